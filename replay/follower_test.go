package replay

import (
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"testing"
	"time"

	"rankcache"
)

// script is a board and its set that note what is done to them.
type script struct {
	done    []string
	have    rankcache.Progress
	current time.Time
}

func (s *script) note(format string, args ...any) {
	s.done = append(s.done, fmt.Sprintf(format, args...))
}

func (s *script) Apply(us []rankcache.Update) rankcache.Applied {
	s.note("apply %d", len(us))
	return rankcache.Applied{Applied: len(us)}
}
func (s *script) Load(uint64, []rankcache.Entry) error { return nil }
func (s *script) AcceptHoles(uint64)                   {}
func (s *script) Reset()                               { s.note("reset") }
func (s *script) Progress() rankcache.Progress         { return s.have }
func (s *script) Score(string) (float64, uint64, bool) { return 0, 0, false }
func (s *script) Publish()                             { s.note("publish") }
func (s *script) MarkCurrent(t time.Time)              { s.current = t }
func (s *script) CurrentAt() time.Time                 { return s.current }
func (s *script) Snapshot() (rankcache.Stamp, iter.Seq[[]rankcache.Entry]) {
	return rankcache.Stamp{Seq: s.have.Contiguous, Members: s.have.Members}, nil
}
func (s *script) Repair(m string, _ float64, _ bool, seq uint64) bool {
	s.note("repair %s at %d", m, seq)
	return true
}
func (s *script) Page(int, int, rankcache.Order) rankcache.Page { return rankcache.Page{} }
func (s *script) Standings(dst []rankcache.Standing, ms []string, _ rankcache.Order) ([]rankcache.Standing, rankcache.Stamp) {
	return append(dst, make([]rankcache.Standing, len(ms))...), rankcache.Stamp{}
}
func (s *script) Create(rankcache.BoardID) Board { return s }
func (s *script) Open(rankcache.BoardID)         { s.note("open") }
func (s *script) Close(rankcache.BoardID)        { s.note("close") }
func (s *script) Drop(rankcache.BoardID)         {}
func (s *script) want(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(s.done, want) {
		t.Errorf("done %q, want %q", s.done, want)
	}
	s.done = nil
}

func readTopic(anew bool, high int64) *topic {
	t := newTopic(topicInfo{"update_cache_b", "id", 1}, anew)
	p := t.partitions()[0]
	p.set(map[*partition]offsets{p: {0, high}})
	return t
}

// The gate finds the board good; before it opens it, the topic turns out to be
// another one. The board must not be opened, empty as it is then.
func TestGateOpensNothingThatBeganAnew(t *testing.T) {
	s := &script{}
	f := newFollower("b", "update_cache_b", s, newMetrics(), time.Now())
	f.begin(readTopic(false, 5), s)
	checked := f.epochNow()
	f.begin(readTopic(true, 0), s)
	if f.open(checked, s) || f.readable.Load() {
		t.Error("opened though it began anew")
	}
	s.want(t, "close", "reset")
	if !f.open(f.epochNow(), s) {
		t.Error("not opened though nothing has happened since")
	}
	f.begin(readTopic(true, 0), s) // the other order: it is closed before it is emptied
	s.want(t, "open", "close", "reset")
	f.drop()
	if f.open(f.epochNow(), s) {
		t.Error("opened though it was dropped")
	}
}

func pumpOf(f *follower) *pump {
	boards, _ := f.board.(*script)
	r := &Runner{cfg: Config{PublishEvery: time.Hour}, boards: boards, metrics: newMetrics(),
		log: slog.New(slog.DiscardHandler), totalsKick: make(chan struct{}, 1)}
	r.routes.Store(&routes{f.id: f})
	p := newPump(r, newBatches())
	p.timer = time.NewTimer(time.Hour)
	return p
}

func updateAt(part *partition, offset int64) item {
	u := rankcache.Update{Board: "b", Member: "m", Op: rankcache.OpIncr, Delta: 1, Score: 1, Seq: uint64(offset + 1), Order: "o"}
	return item{part: part, offset: offset, value: rankcache.AppendUpdate(nil, &u)}
}

// Offsets that go back are another log under the same name: nothing of it is
// applied before the board begins anew.
func TestPumpStopsWhenOffsetsGoBack(t *testing.T) {
	s := &script{}
	f := newFollower("b", "update_cache_b", s, newMetrics(), time.Now())
	p, old := pumpOf(f), readTopic(false, 4)
	part := old.partitions()[0]
	p.apply([]item{{part: part, kind: itemBegin}, updateAt(part, 0), updateAt(part, 3)})
	if !old.ended() {
		t.Error("the log is not seen to have ended")
	}
	p.apply([]item{updateAt(part, 1), updateAt(part, 2), updateAt(part, 9)})
	if !old.torn.Load() {
		t.Error("not noticed that offsets went back")
	}
	s.want(t, "apply 2")
	again := readTopic(true, 1)
	p.apply([]item{updateAt(part, 10), {part: again.partitions()[0], kind: itemBegin}, updateAt(again.partitions()[0], 0)})
	s.want(t, "close", "reset", "apply 1")
	if !again.ended() {
		t.Error("the new log is not seen to have ended")
	}
}

// A log may end in what never arrives: only the end itself tells.
func TestLogEndsByPosition(t *testing.T) {
	f := newFollower("b", "update_cache_b", &script{}, newMetrics(), time.Now())
	p, log := pumpOf(f), readTopic(false, 9)
	part := log.partitions()[0]
	p.apply([]item{updateAt(part, 0), updateAt(part, 7)})
	if log.ended() || log.left() != 1 {
		t.Errorf("ended %t, left %d: want it one short", log.ended(), log.left())
	}
	p.apply([]item{{part: part, offset: 9, kind: itemEnd}})
	if !log.ended() || log.left() != 0 {
		t.Error("not ended at the end")
	}
}

// What is applied to an open board is published at once after a quiet time, and
// then together with what follows.
func TestPublishing(t *testing.T) {
	s := &script{have: rankcache.Progress{Contiguous: 3, Highest: 3}}
	f := newFollower("b", "update_cache_b", s, newMetrics(), time.Now())
	p, log := pumpOf(f), readTopic(false, 9)
	part := log.partitions()[0]
	p.apply([]item{updateAt(part, 0)})
	s.want(t, "apply 1")
	f.open(f.epochNow(), s)
	asked := time.Now()
	f.overdue.Store(&reading{seq: 3, asked: asked})
	p.apply([]item{updateAt(part, 1)})
	s.want(t, "open", "apply 1", "publish")
	if !s.current.Equal(asked) || f.overdue.Load() != nil {
		t.Error("the board reached the reading and is not marked as current")
	}
	p.apply([]item{updateAt(part, 2)})
	p.apply([]item{updateAt(part, 3)})
	s.want(t, "apply 1", "apply 1")
	p.publish()
	s.want(t, "publish")
}
