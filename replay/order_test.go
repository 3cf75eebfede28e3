package replay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache"
	"rankcache/internal/lab/fill"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// countedMembers is how many members a counted board has.
const countedMembers = 64

// countedBoard gives its members one point after the other, so that its state at each
// seq is known. Each member's updates are in one partition.
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
		b.records = append(b.records, &kgo.Record{Topic: b.topic(), Value: wire.AppendUpdate(nil, &u), Partition: int32(b.seq) % b.parts})
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
func (e *env) newCountedBoard(partitions int32) *countedBoard {
	b := &countedBoard{board: e.newBoard(partitions, nil)}
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

// stalledKafka is a cluster whose second broker can be made to answer no reader.
type stalledKafka struct {
	*servers.Kfake
	away atomic.Bool
}

func newStalledKafka(t *testing.T) *stalledKafka {
	k := &stalledKafka{Kfake: testkit.Kfake(t, kfake.NumBrokers(2))}
	for _, key := range []int16{int16(kmsg.Fetch), int16(kmsg.ListOffsets)} {
		k.ControlKey(key, func(kmsg.Request) (kmsg.Response, error, bool) {
			k.KeepControl()
			if k.away.Load() && k.CurrentNode() == 1 {
				return nil, errors.New("away"), true
			}
			return nil, nil, false
		})
	}
	return k
}

// place gives partition 0 to the second broker and the others to the first.
func (k *stalledKafka) place(b *countedBoard) {
	b.t.Helper()
	for n := range b.parts {
		leader := int32(0)
		if n == 0 {
			leader = 1
		}
		b.check(k.MoveTopicPartition(b.topic(), n, leader))
	}
}

// One of four partitions can't be read while many updates come. What is read ahead of
// it is bounded, answers stay of one moment, and the board stays open: Redis is not
// read for a page.
func TestStalledPartition(t *testing.T) {
	t.Parallel()
	k := newStalledKafka(t)
	e := newEnv(t, k.Addr())
	e.still = false
	b := e.newCountedBoard(4)
	k.place(b)
	s := e.start(ids(b.board))
	s.waitOpen(b.id)
	w := s.watch(b.id)
	k.away.Store(true)
	b.change(countedMembers) // a request that was sent before may still be answered
	b.flush(nil)
	behind := b.seq
	for range 8 {
		b.change(20_000)
		b.flush(nil)
	}
	testkit.Eventually(t, timeout, func() error {
		if n := s.counter("rankcache_replay_pauses_total"); n == 0 {
			return errors.New("nothing was paused")
		}
		return nil
	})
	read := s.counter("rankcache_replay_records_total")
	if read > 110_000 {
		t.Errorf("%v records were read: the partitions that are ahead are not paused", read)
	}
	if at := s.status(b.id).Have; at > behind+uint64(b.parts) {
		t.Errorf("the board is at %d, though it can't have got further than %d", at, behind)
	}
	k.away.Store(false)
	s.waitOpen(b.id)
	answers, oldest := w.stop()
	if closed := slices.Contains(s.boards.noted(), "close "+string(b.id)); closed || answers == 0 {
		t.Errorf("closed: %t, %d answers", closed, answers)
	}
	t.Logf("%d answers, the oldest %v old; %v records were read ahead", answers, oldest, read)
}

// With one partition and two writers, the older update can only come behind what is
// held: the partition is read on.
func TestOlderUpdateIsProducedLast(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	e.still = false
	b := e.newCountedBoard(1)
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
	if n := s.counter("rankcache_replay_pauses_total"); n != 0 {
		t.Errorf("paused %v times, though there is no other partition", n)
	}
}

// What is missing was not produced yet: pausing what is ahead does not help, and is
// ended as soon as the other partition is known to have nothing. No record is lost or
// read twice by it.
func TestPartitionIsProducedLate(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	e.still = false
	b := e.newCountedBoard(2)
	s := e.start(ids(b.board))
	s.waitOpen(b.id)
	w := s.watch(b.id)
	b.change(120_000)
	late := b.flush(func(r *kgo.Record) bool { return r.Partition == 0 })
	ahead := float64(int(b.seq) - len(late))
	testkit.Eventually(t, timeout, func() error {
		if read := s.counter("rankcache_replay_records_total"); read < ahead {
			return fmt.Errorf("%v of %v records were read", read, ahead)
		}
		return nil
	})
	if n := s.counter("rankcache_replay_pauses_total"); n != 1 {
		t.Errorf("paused %v times, want once", n)
	}
	b.check(b.client.ProduceSync(context.Background(), late...).FirstErr())
	s.waitOpen(b.id)
	if answers, _ := w.stop(); answers == 0 || slices.Contains(s.boards.noted(), "close "+string(b.id)) {
		t.Errorf("%d answers, events %q", answers, s.boards.noted())
	}
	if read := s.counter("rankcache_replay_records_total"); read != float64(b.seq) {
		t.Errorf("%v records were read of %d", read, b.seq)
	}
}

// A partition that does not come back: the others are read on after a time, what is
// held is dropped when it is too much, and the board, which would need updates that
// can't be read, is closed. No answer was of two moments.
func TestPartitionThatStaysAway(t *testing.T) {
	t.Parallel()
	k := newStalledKafka(t)
	e := newEnv(t, k.Addr())
	e.still = false
	b := e.newCountedBoard(4)
	k.place(b)
	s := e.start(ids(b.board))
	s.waitOpen(b.id)
	w := s.watch(b.id)
	k.away.Store(true)
	for range 12 {
		b.change(20_000)
		b.flush(nil)
	}
	s.waitClosed(b.id)
	if n := s.counter("rankcache_audit_differences_total", "overflow"); n != 1 {
		t.Errorf("%v overflows", n)
	}
	k.away.Store(false)
	s.waitOpen(b.id)
	if answers, _ := w.stop(); answers == 0 {
		t.Error("no answers")
	}
}
