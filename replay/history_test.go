package replay

import (
	"fmt"
	"testing"
	"time"

	"rankcache"
	"rankcache/localboard"
	"rankcache/wire"
)

func TestHistory(t *testing.T) {
	u := func(seq uint64, order, member string, score float64) *wire.Update {
		return &wire.Update{Op: wire.OpSet, Seq: seq, OrderID: order, Member: member, Score: score}
	}
	var h history
	for i, c := range []struct {
		u     *wire.Update
		clash bool
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
		{u(historyLen+2, "y", "m", 5), false},
		{u(2, "z", "m", 5), false}, // too long ago
		{u(historyLen+2, "z", "m", 5), true},
	} {
		if got := h.clashes(c.u); got != c.clash {
			t.Errorf("step %d: clash %t", i, got)
		}
	}
	h.clear()
	if h.clashes(u(1, "c", "m", 1)) {
		t.Error("remembered after it was cleared")
	}
}

// A seq that is used again closes the board before anything is applied, and what
// had been found out about it before can't open it.
func TestReusedSeqClosesAtOnce(t *testing.T) {
	s := &script{}
	f := newFollower("b", "update_cache_b", s, newMetrics(), time.Now())
	p, log := pumpOf(f), readTopic(false, 9)
	part := log.partitions()[0]
	p.apply([]item{{part: part, kind: itemBegin}, updateAt(part, 0), updateAt(part, 1)})
	f.open(f.epochNow(), s)
	s.want(t, "apply 2", "open")
	other := wire.Update{Board: "b", Member: "m", Op: wire.OpSet, Score: 5, Seq: 2, OrderID: "another"}
	p.apply([]item{{part: part, offset: 2, value: wire.AppendUpdate(nil, &other)}})
	s.want(t, "close", "apply 1")
	if f.readable.Load() || f.open(f.epochNow(), s) {
		t.Error("readable though its seqs are counted again")
	}
	if why := f.heal(TotalSeq, s); why == nil || why.kind != kindReused {
		t.Errorf("fault %+v", why)
	}
	s.want(t, "close", "reset")
	p.apply([]item{updateAt(part, 3)})
	s.want(t, "apply 1")
	if why := f.heal(TotalSeq, s); why != nil {
		t.Errorf("the new count clashes with the old: %+v", why)
	}
}

// A closed board may be half full: whoever still wants to publish it must not,
// because a reader may have kept it since it was open.
func TestClosedBoardIsNotPublished(t *testing.T) {
	s := &script{have: rankcache.Progress{Contiguous: 1, Highest: 1}}
	f := newFollower("b", "update_cache_b", s, newMetrics(), time.Now())
	f.open(f.epochNow(), s)
	f.report(f.epochNow(), gone("total"), s)
	f.publish()
	f.repair(f.epochNow(), []difference{{claim: claim{member: "m"}}}, f.metrics)
	if f.show(time.Now()) {
		t.Error("shown")
	}
	s.want(t, "open", "close")
	passed := f.epochNow()
	f.heal(TotalSeq, s)
	s.want(t, "close", "reset")
	if f.load(passed, 5, nil) == nil || f.learn(reading{seq: 9, asked: time.Now()}, passed) {
		t.Error("took what belongs to an epoch that has passed")
	}
	f.report(passed, gone("total"), s)
	if why := f.heal(TotalSeq, s); why != nil {
		t.Errorf("a fault of an epoch that has passed: %+v", why)
	}
}

// BenchmarkPump is the way of an update from the reader's batch to the board:
// go test -run '^$' -bench Pump -count 10 ./replay
func BenchmarkPump(b *testing.B) {
	const updates = 200_000
	board := localboard.New("b")
	f := newFollower("b", "update_cache_b", board, newMetrics(), time.Now())
	p := pumpOf(f)
	values := make([][]byte, updates)
	for i := range values {
		u := wire.Update{Board: "b", Member: fmt.Sprint(1_000_000 + i*7919%21_000), Op: wire.OpIncr, Delta: 1,
			Score: float64(i), Seq: uint64(i + 1), OrderID: fmt.Sprint("gift-", i), At: 1_760_000_000_000}
		values[i] = wire.AppendUpdate(nil, &u)
	}
	batch := make([]item, 0, batchItems)
	for b.Loop() {
		board.Reset()
		log := readTopic(false, updates)
		part := log.partitions()[0]
		batch = append(batch[:0], item{part: part, kind: itemBegin})
		for i, v := range values {
			if batch = append(batch, item{part: part, offset: int64(i), value: v}); len(batch) == batchItems {
				p.apply(batch)
				batch = batch[:0]
			}
		}
		p.apply(batch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/updates, "ns/update")
}

// BenchmarkHistory is what looking for reused seqs adds to each update.
func BenchmarkHistory(b *testing.B) {
	var h history
	us := make([]wire.Update, 1024)
	for i := range us {
		us[i] = wire.Update{Member: fmt.Sprint(1_000_000 + i), Op: wire.OpIncr, Score: float64(i), OrderID: fmt.Sprint("gift-", i)}
	}
	seq := uint64(0)
	for b.Loop() {
		u := &us[seq%1024]
		seq++
		u.Seq = seq
		if h.clashes(u) {
			b.Fatal("clash")
		}
	}
}
