package localboard

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"rankcache/wire"
)

// TestShelves grows a board to many shelves row by row, moves rows between them,
// and empties it again: in the middle, at the ends, and to nothing.
func TestShelves(t *testing.T) {
	const most = 8 * shelfChunks * chunkFill
	b, m := newBoard(t), newModel()
	b.Publish() // from now on the order is kept row by row
	rng, seq := rand.New(rand.NewPCG(11, 12)), uint64(0)
	do := func(op wire.Op, who int) {
		seq++
		us := []wire.Update{{Member: fmt.Sprint("user:", who), Op: op, Score: float64(rng.IntN(most / 4)), Seq: seq}}
		b.Apply(us)
		m.apply(us)
		if seq%256 == 0 { // few enough that it is not merged
			b.Publish()
		}
	}
	settled := func(phase string, atLeast, atMost int) {
		t.Helper()
		b.Publish()
		check(t, b)
		m.compare(t, b)
		if n := len(b.order.shelves); n < atLeast || n > atMost {
			t.Errorf("%s: %d shelves, want %d to %d", phase, n, atLeast, atMost)
		}
	}
	for _, who := range rng.Perm(most) {
		do(wire.OpSet, who)
	}
	settled("grown", 6, 24)
	for range most {
		do(wire.OpSet, rng.IntN(most))
	}
	settled("moved", 6, 24)
	for _, who := range rng.Perm(most)[:most-500] {
		do(wire.OpDelete, who)
	}
	settled("shrunk", 1, 3)
	for who := range most {
		do(wire.OpDelete, who)
	}
	settled("emptied", 0, 0)
	do(wire.OpSet, 1)
	settled("begun again", 1, 1)
}
