package replay_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/lab/fill"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// countedMembers is how many members a counted board has.
const countedMembers = 64

// countedBoard gives its members one point after the other, so that its state at each
// seq is known.
type countedBoard struct {
	*board
	records []*kgo.Record
}

func countedMember(seq uint64) string { return fmt.Sprintf("m%02d", seq%countedMembers) }

// scoreAt returns the n-th member's score at a seq.
func scoreAt(n int, seq uint64) float64 {
	whole := seq / countedMembers // every member has had that many
	if rest := seq % countedMembers; 0 < n && uint64(n) <= rest {
		whole++
	}
	return float64(whole)
}

// change applies n changes to Redis, and keeps their updates to be produced.
func (b *countedBoard) change(n int) {
	b.t.Helper()
	b.records = b.records[:0]
	for range n {
		b.seq++
		u := b.filled.Incr(countedMember(b.seq), 1)
		u.OrderID, u.At = fmt.Sprint("gift-", b.seq), 1
		b.records = append(b.records, &kgo.Record{Topic: b.topic(), Value: wire.AppendUpdate(nil, &u)})
	}
	b.check(b.filled.Redis(context.Background(), b.redis, b.names, 0))
}

// flush produces what changed, except the updates for which hold is true, which it returns.
func (b *countedBoard) flush(hold func(*kgo.Record) bool) (held []*kgo.Record) {
	b.t.Helper()
	now := slices.DeleteFunc(slices.Clone(b.records), func(r *kgo.Record) bool {
		if hold == nil || !hold(r) {
			return false
		}
		held = append(held, r)
		return true
	})
	b.check(b.client.ProduceSync(context.Background(), now...).FirstErr())
	return held
}

// newCountedBoard makes a board that has each member.
func (e *env) newCountedBoard() *countedBoard {
	b := &countedBoard{board: e.newBoard(1, nil)}
	b.filled = fill.NewBoard(b.id)
	b.change(2 * countedMembers)
	b.flush(nil)
	return b
}

// watcher reads a board all the time and checks that each answer is of one moment.
type watcher struct {
	stop func() (answers int, oldest time.Duration)
}

func (s *sidecar) watch(id rankcache.BoardID) *watcher {
	quit := make(chan struct{})
	var wg sync.WaitGroup
	var answers int
	var oldest time.Duration
	wg.Go(func() {
		for {
			select {
			case <-quit:
				return
			case <-time.After(time.Millisecond):
			}
			b, ok := s.boards.Get(id)
			if !ok {
				continue
			}
			page := rowsOf(b, countedMembers+1)
			if err := ofOneMoment(page); err != nil {
				s.env.t.Error(err)
				return
			}
			answers++
			oldest = max(oldest, time.Since(b.CurrentAt()))
		}
	})
	return &watcher{sync.OnceValues(func() (int, time.Duration) {
		close(quit)
		wg.Wait()
		return answers, oldest
	})}
}

// ofOneMoment compares a page of a counted board with its state at the page's seq.
func ofOneMoment(page rankcache.Answer) error {
	if page.Members != countedMembers || len(page.Entries) != countedMembers {
		return fmt.Errorf("%d members and %d entries at seq %d", page.Members, len(page.Entries), page.Seq)
	}
	for _, e := range page.Entries {
		var n int
		if _, err := fmt.Sscanf(e.Member, "m%02d", &n); err != nil {
			return err
		}
		if want := scoreAt(n, page.Seq); e.Score != want {
			return fmt.Errorf("%s has %v at seq %d, want %v", e.Member, e.Score, page.Seq, want)
		}
	}
	return nil
}

// Of two writers one is late: its update comes behind what waits for it.
func TestOlderUpdateIsProducedLast(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	e.still = false
	b := e.newCountedBoard()
	s := e.start(ids(b.board))
	s.waitOpen(b.id)
	w := s.watch(b.id)
	b.change(60_000)
	first := b.records[0]
	late := b.flush(func(r *kgo.Record) bool { return r == first })
	testkit.Eventually(t, timeout, func() error {
		if read := s.counter("rankcache_replay_records_total"); read < float64(b.seq-1) {
			return fmt.Errorf("%v of %d records were read", read, b.seq-1)
		}
		return nil
	})
	b.check(b.client.ProduceSync(context.Background(), late...).FirstErr())
	s.waitOpen(b.id)
	if answers, _ := w.stop(); answers == 0 || slices.Contains(s.boards.noted(), "close "+string(b.id)) {
		t.Errorf("%d answers, events %q", answers, s.boards.noted())
	}
}

// A writer that does not come back: what is held is dropped when it is too much, and the
// board, which would need an update that can't be read, is closed and comes from Redis. No
// answer was of two moments.
func TestOlderUpdateNeverComes(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	e.still = false
	b := e.newCountedBoard()
	s := e.start(ids(b.board))
	s.waitOpen(b.id)
	w := s.watch(b.id)
	b.change(100_000)
	first := b.records[0]
	b.flush(func(r *kgo.Record) bool { return r == first })
	s.waitClosed(b.id)
	if n := s.counter("rankcache_audit_differences_total", "overflow"); n != 1 {
		t.Errorf("%v overflows", n)
	}
	s.waitOpen(b.id)
	if answers, _ := w.stop(); answers == 0 {
		t.Error("no answers")
	}
}
