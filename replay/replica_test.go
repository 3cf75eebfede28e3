package replay

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"rankcache"
	"rankcache/rooms"
	"rankcache/wire"
)

// fakeBoard is a board and its set that record what is done to them.
type fakeBoard struct {
	done    []string
	have    rankcache.Progress
	current time.Time
	proves  bool
	life    rankcache.Life
}

func (b *fakeBoard) note(format string, args ...any) {
	b.done = append(b.done, fmt.Sprintf(format, args...))
}

func (b *fakeBoard) Apply(us []wire.Update) rankcache.ApplyResult {
	b.note("apply %d", len(us))
	return rankcache.ApplyResult{Applied: len(us)}
}
func (b *fakeBoard) StartLoad(uint64, ...[]rankcache.Entry) func() error {
	return func() error { return nil }
}
func (b *fakeBoard) Reset()                               { b.note("reset") }
func (b *fakeBoard) Progress() rankcache.Progress         { return b.have }
func (b *fakeBoard) Score(string) (float64, uint64, bool) { return 0, 0, false }
func (b *fakeBoard) Data(string) (string, uint64)         { return "", 0 }
func (b *fakeBoard) Publish()                             { b.note("publish") }
func (b *fakeBoard) MarkCurrent(t time.Time)              { b.current = t }
func (b *fakeBoard) CurrentAt() time.Time                 { return b.current }
func (b *fakeBoard) SetPrimed(bool, rankcache.State)      {}
func (b *fakeBoard) Snapshot() (rankcache.Stamp, iter.Seq[[]rankcache.Entry]) {
	return rankcache.Stamp{State: rankcache.State{Seq: b.have.Contiguous}, Members: b.have.Members}, nil
}
func (b *fakeBoard) Sum() uint64                      { return 0 }
func (b *fakeBoard) SetRun(run uint64)                { b.note("run %d", run) }
func (b *fakeBoard) Prove(s rankcache.State) bool     { b.note("prove %v", s); return b.proves }
func (b *fakeBoard) SetLife(l rankcache.Life)         { b.life = l }
func (b *fakeBoard) Life() rankcache.Life             { return b.life }
func (b *fakeBoard) Relax()                           { b.note("relax") }
func (b *fakeBoard) State() rankcache.State           { return rankcache.State{Seq: b.have.Contiguous} }
func (b *fakeBoard) SumAt(_, _ uint64) (uint64, bool) { return 0, false }
func (b *fakeBoard) Read(_ context.Context, _ []rankcache.Query, as []rankcache.Answer) {
	for i := range as {
		as[i].Fail(rankcache.ErrNotKept)
	}
}
func (b *fakeBoard) Create(rankcache.BoardID) Board { return b }
func (b *fakeBoard) Prepare(context.Context, Board) {}
func (b *fakeBoard) Open(rankcache.BoardID)         { b.note("open") }
func (b *fakeBoard) Close(rankcache.BoardID)        { b.note("close") }
func (b *fakeBoard) Drop(rankcache.BoardID)         {}
func (b *fakeBoard) want(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(b.done, want) {
		t.Errorf("done %q, want %q", b.done, want)
	}
	b.done = nil
}

// feedOf returns a feed of board b with that Board.
func feedOf(boards Boards) *feed {
	return newFeed("b", rooms.Log{Topic: "update_cache_b"}, boards, new(atomic.Int64), newMetrics(), time.Now())
}

// openNow opens a replica in its own epoch.
func openNow(r *replica) bool { return r.open(r.currentEpoch(), opening{equalAt: time.Now()}) }

// logTo returns a reading of board b's topic with one partition that ends at high.
func logTo(high int64, reset bool) *topic {
	t := newTopic(topicInfo{"update_cache_b", "id", 1}, reset)
	p := t.parts[0]
	p.setOffsets(map[*partition]offsets{p: {0, high}})
	return t
}

// The gate finds the board good; before it opens it, the topic turns out to be
// another one. The board must not be opened, empty as it is then.
func TestGateOpensNothingThatWasReset(t *testing.T) {
	b := &fakeBoard{}
	r := feedOf(b).replica
	r.begin(logTo(5, false))
	compared := r.currentEpoch()
	r.begin(logTo(0, true))
	if r.open(compared, opening{equalAt: time.Now()}) || r.readable.Load() {
		t.Error("opened though it was reset")
	}
	b.want(t, "close", "reset")
	if !b.current.IsZero() {
		t.Error("marked as current though it was reset")
	}
	if !openNow(r) {
		t.Error("not opened though nothing has happened since")
	}
	r.begin(logTo(0, true)) // the other order: it is closed before it is emptied
	b.want(t, "open", "close", "reset")
	r.drop()
	if openNow(r) {
		t.Error("opened though it was dropped")
	}
}

// A closed board may be half full: a publication that comes late is dropped, because a
// reader may have kept the board since it was open.
func TestClosedBoardIsNotPublished(t *testing.T) {
	b := &fakeBoard{have: rankcache.Progress{Contiguous: 1, Highest: 1}}
	r := feedOf(b).replica
	openNow(r)
	r.report(r.currentEpoch(), faultGone("total"))
	r.publish()
	if r.publishCurrent(time.Now()) {
		t.Error("published")
	}
	b.want(t, "open", "close")
	passed := r.currentEpoch()
	r.startRefill(TotalSeq)
	b.want(t, "close", "reset")
	if r.load(passed, rankcache.State{Seq: 5}, nil) == nil || r.learn(reading{State: rankcache.State{Seq: 9}, requested: time.Now()}, passed) {
		t.Error("took what belongs to an epoch that has passed")
	}
	r.report(passed, faultGone("total"))
	if why := r.startRefill(TotalSeq); why != nil {
		t.Errorf("a fault of an epoch that has passed: %+v", why)
	}
}
