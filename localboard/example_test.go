package localboard_test

import (
	"context"
	"fmt"

	"rankcache"
	"rankcache/localboard"
	"rankcache/wire"
)

func Example() {
	boards := localboard.NewBoards()
	b := boards.Create("1_2_3")
	b.Apply([]wire.Update{
		{Member: "ann", Op: wire.OpIncr, Score: 5, Seq: 1},
		{Member: "bob", Op: wire.OpIncr, Score: 7, Seq: 2},
		{Member: "ann", Op: wire.OpIncr, Score: 9, Seq: 3},
	})
	_, readable := boards.Get("1_2_3")
	fmt.Println("while it is filled:", readable)

	boards.Open("1_2_3")
	open, _ := boards.Get("1_2_3")
	top := rankcache.One(context.Background(), open, rankcache.Query{Limit: 2, Members: []string{"bob"}})
	fmt.Println("top:", top.Entries)
	fmt.Println("bob is number", top.Own[0].Rank, "of", top.Members, "at seq", top.Seq)
	// Output:
	// while it is filled: false
	// top: [{ann 9} {bob 7}]
	// bob is number 2 of 2 at seq 3
}
