package replay

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"rankcache"
	"rankcache/localboard"
	"rankcache/wire"
)

// dispatcherOf returns a dispatcher of one board that publishes at once, and then
// not again within the test.
func dispatcherOf(f *feed) *dispatcher {
	r := &common{cfg: Config{PublishEvery: time.Hour}, metrics: newMetrics(), log: slog.New(slog.DiscardHandler), totalsWake: newSignal()}
	r.feeds.replace(map[rankcache.BoardID]*feed{f.id: f})
	return newDispatcher(r, newBatches())
}

func updateAt(part *partition, offset int64) item {
	u := wire.Update{Board: "b", Member: "m", Op: wire.OpIncr, Delta: 1, Score: 1, Run: 1, Seq: uint64(offset + 1), OrderID: "o"}
	return item{part: part, offset: offset, value: wire.AppendUpdate(nil, &u)}
}

// Offsets that go back are another log under the same name: nothing of it is
// applied before the board is reset.
func TestDispatchStopsWhenOffsetsGoBack(t *testing.T) {
	b := &fakeBoard{}
	d, old := dispatcherOf(feedOf(b)), logTo(4, false)
	part := old.parts[0]
	d.dispatch([]item{{part: part, kind: itemBegin}, updateAt(part, 0), updateAt(part, 3)})
	if !old.ended() {
		t.Error("the log is not seen to have ended")
	}
	d.dispatch([]item{updateAt(part, 1), updateAt(part, 2), updateAt(part, 9)})
	if !old.rewound.Load() {
		t.Error("not noticed that offsets went back")
	}
	b.want(t, "run 1", "apply 2")
	again := logTo(1, true)
	d.dispatch([]item{updateAt(part, 10), {part: again.parts[0], kind: itemBegin}, updateAt(again.parts[0], 0)})
	b.want(t, "close", "reset", "run 1", "apply 1")
	if !again.ended() {
		t.Error("the new log is not seen to have ended")
	}
}

// The last offsets of a log may never arrive: only the end event shows them.
func TestLogEndsByPosition(t *testing.T) {
	d, log := dispatcherOf(feedOf(&fakeBoard{})), logTo(9, false)
	part := log.parts[0]
	d.dispatch([]item{updateAt(part, 0), updateAt(part, 7)})
	if log.ended() || log.left() != 1 {
		t.Errorf("ended %t, left %d: want it one short", log.ended(), log.left())
	}
	d.dispatch([]item{{part: part, offset: 9, kind: itemEnd}})
	if !log.ended() || log.left() != 0 {
		t.Error("not ended at the end")
	}
}

// What is applied to an open board is published at once after a quiet time, and
// then together with what follows.
func TestPublishing(t *testing.T) {
	b := &fakeBoard{have: rankcache.Progress{Contiguous: 3, Highest: 3}}
	f := feedOf(b)
	d, log := dispatcherOf(f), logTo(9, false)
	part := log.parts[0]
	d.dispatch([]item{updateAt(part, 0)})
	b.want(t, "run 1", "apply 1")
	openNow(f.replica)
	requested := time.Now()
	f.replica.awaited.Store(&reading{State: rankcache.State{Seq: 3}, requested: requested, current: requested})
	d.dispatch([]item{updateAt(part, 1)})
	b.want(t, "open", "apply 1", "publish")
	if !b.current.Equal(requested) || f.replica.awaited.Load() != nil {
		t.Error("the board reached the reading and is not marked as current")
	}
	d.dispatch([]item{updateAt(part, 2)})
	d.dispatch([]item{updateAt(part, 3)})
	b.want(t, "apply 1", "apply 1")
	d.publish.all()
	b.want(t, "publish")
}

// TestTimeUntilVisible: of the oldest command in each publication of an open board.
func TestTimeUntilVisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, m := feedOf(&fakeBoard{}), newMetrics()
		p := newPublisher(time.Hour, m.visible)
		apply := func(ages ...time.Duration) {
			var us []wire.Update
			for i, age := range ages {
				us = append(us, wire.Update{Board: "b", Member: "m", Op: wire.OpIncr, Run: 1, Seq: uint64(i + 1), At: time.Now().Add(-age).UnixMilli()})
			}
			f.replica.apply(us)
			p.add(f)
			p.all()
		}
		apply(time.Hour) // the board is being filled
		openNow(f.replica)
		apply(80*time.Millisecond, 20*time.Millisecond)
		apply(-time.Second) // a clock is ahead
		p.add(f)
		p.all() // nothing new
		var got dto.Metric
		if err := m.visible.Write(&got); err != nil {
			t.Fatal(err)
		}
		h := got.GetHistogram()
		if h.GetSampleCount() != 2 || h.GetSampleSum() < .0799 || h.GetSampleSum() > .0811 {
			t.Errorf("%d publications in %v s, want 2 in 80 ms", h.GetSampleCount(), h.GetSampleSum())
		}
	})
}

// localBoards is a set of one board.
type localBoards struct{ *localboard.Board }

func (b localBoards) Create(rankcache.BoardID) Board { return b.Board }
func (localBoards) Prepare(context.Context, Board)   {}
func (localBoards) Open(rankcache.BoardID)           {}
func (localBoards) Close(rankcache.BoardID)          {}
func (localBoards) Drop(rankcache.BoardID)           {}

// BenchmarkPump is the path of an update from the consumer's batch to the board:
// go test -run '^$' -bench Pump -count 10 ./replay
func BenchmarkPump(b *testing.B) {
	const updates = 200_000
	board := localboard.New("b")
	d := dispatcherOf(feedOf(localBoards{board}))
	values := make([][]byte, updates)
	for i := range values {
		u := wire.Update{Board: "b", Member: fmt.Sprint(1_000_000 + i*7919%21_000), Op: wire.OpIncr, Delta: 1,
			Score: float64(i), Run: 1, Seq: uint64(i + 1), OrderID: fmt.Sprint("gift-", i), At: 1_760_000_000_000}
		values[i] = wire.AppendUpdate(nil, &u)
	}
	batch := make([]item, 0, batchItems)
	for b.Loop() {
		board.Reset()
		log := logTo(updates, false)
		part := log.parts[0]
		batch = append(batch[:0], item{part: part, kind: itemBegin})
		for i, v := range values {
			if batch = append(batch, item{part: part, offset: int64(i), value: v}); len(batch) == batchItems {
				d.dispatch(batch)
				batch = batch[:0]
			}
		}
		d.dispatch(batch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/updates, "ns/update")
}
