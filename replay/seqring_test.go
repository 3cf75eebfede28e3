package replay

import (
	"fmt"
	"testing"

	"rankcache/wire"
)

func TestSeqRing(t *testing.T) {
	u := func(seq uint64, order, member string, score float64) *wire.Update {
		return &wire.Update{Op: wire.OpSet, Seq: seq, OrderID: order, Member: member, Score: score}
	}
	var ring seqRing
	for i, c := range []struct {
		u      *wire.Update
		reused bool
	}{
		{u(1, "a", "m", 1), false},
		{u(2, "b", "m", 2), false},
		{u(1, "a", "m", 1), false}, // a producer repeats
		{u(1, "x", "m", 1), true},
		{u(1, "x", "m", 1), false}, // what it stands for now
		{u(2, "b", "n", 2), true},
		{u(2, "b", "n", 3), true},
		{&wire.Update{Op: wire.OpDelete, Seq: 2, OrderID: "b", Member: "n"}, true},
		{&wire.Update{Op: wire.OpDelete, Seq: 2, OrderID: "b", Member: "n", Score: 7}, false},
		{u(0, "b", "n", 2), false},
		{u(ringLen+2, "y", "m", 5), false},
		{u(2, "z", "m", 5), false}, // too long ago
		{u(ringLen+2, "z", "m", 5), true},
	} {
		if got := ring.Add(c.u); got != c.reused {
			t.Errorf("step %d: reused %t", i, got)
		}
	}
	ring.Clear()
	if ring.Add(u(1, "c", "m", 1)) {
		t.Error("remembered after it was cleared")
	}
}

// BenchmarkHistory is what looking for reused seqs adds to each update.
func BenchmarkHistory(b *testing.B) {
	var ring seqRing
	us := make([]wire.Update, 1024)
	for i := range us {
		us[i] = wire.Update{Member: fmt.Sprint(1_000_000 + i), Op: wire.OpIncr, Score: float64(i), OrderID: fmt.Sprint("gift-", i)}
	}
	seq := uint64(0)
	for b.Loop() {
		u := &us[seq%1024]
		seq++
		u.Seq = seq
		if ring.Add(u) {
			b.Fatal("reused")
		}
	}
}
