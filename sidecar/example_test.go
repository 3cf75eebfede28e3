package sidecar_test

import (
	"context"
	"fmt"
	"log"

	"rankcache"
	"rankcache/localboard"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/wire"
)

// openBoards hands local boards to a Reader.
type openBoards struct{ *localboard.Boards }

func (b openBoards) Get(id rankcache.BoardID) (sidecar.Board, bool) {
	board, ok := b.Boards.Get(id)
	return board, ok
}

// noOrigin stands where Redis would be; nothing here asks it.
type noOrigin struct{ rankcache.Reader }

// A Go program reads boards by package call: no HTTP, no encoding, and for an
// open super-hot board no allocation.
func ExampleReader() {
	boards := localboard.NewBoards()
	board := boards.Create("1_2_3")
	board.Apply([]wire.Update{
		{Board: "1_2_3", Member: "ann", Op: wire.OpIncr, Score: 30, Seq: 1},
		{Board: "1_2_3", Member: "bob", Op: wire.OpIncr, Score: 50, Seq: 2},
		{Board: "1_2_3", Member: "cyd", Op: wire.OpIncr, Score: 40, Seq: 3},
	})
	boards.Open("1_2_3")

	file, err := rooms.Parse([]byte(`rooms: [{uid: "88", mode: super-hot, boards: ["1_2_3"]}]`))
	if err != nil {
		log.Fatal(err)
	}
	tiers := file.Resolve(nil)
	reader, err := sidecar.NewReader(sidecar.Config{
		Tiers:  func() *rooms.Tiers { return tiers },
		Boards: openBoards{boards},
		Origin: noOrigin{},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}

	a := rankcache.One(context.Background(), reader, rankcache.Query{Board: "1_2_3", Limit: 2, Members: []string{"ann", "zoe"}})
	if a.Err != nil {
		log.Fatal(a.Err)
	}
	fmt.Printf("%s at seq %d, %d members\n", a.Source, a.Seq, a.Members)
	for i, e := range a.Entries {
		fmt.Println(a.Start+i+1, e.Member, a.Form.Shown(e.Score))
	}
	for _, own := range a.Own {
		fmt.Println(own.Member, own.Rank)
	}
	// Output:
	// local at seq 3, 3 members
	// 1 bob 50
	// 2 cyd 40
	// ann 3
	// zoe 0
}
