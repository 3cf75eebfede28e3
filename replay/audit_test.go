package replay_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/localboard"
	"rankcache/replay"
	"rankcache/wire"
)

func auditEvery(d time.Duration) option { return func(s *setup) { s.AuditEvery = d } }

func totalsEvery(d time.Duration) option { return func(s *setup) { s.TotalsEvery = d } }

const often = 20 * time.Millisecond

// local returns the open board itself, to be changed without the Runner.
func (s *sidecar) local(id rankcache.BoardID) *localboard.Board {
	s.env.t.Helper()
	b, ok := s.boards.Get(id)
	if !ok {
		s.env.t.Fatalf("not open: %+v", s.status(id))
	}
	return b
}

func (s *sidecar) closings(id rankcache.BoardID) int { return s.events("close", id) }

func (s *sidecar) events(what string, id rankcache.BoardID) (n int) {
	for _, event := range s.boards.noted() {
		if event == what+" "+string(id) {
			n++
		}
	}
	return n
}

func (s *sidecar) wantDifferences(kinds ...string) {
	s.env.t.Helper()
	for _, kind := range kinds {
		testkit.Eventually(s.env.t, timeout, func() error { // a board is closed before that is counted
			if s.counter("rankcache_audit_differences_total", kind) == 0 {
				return fmt.Errorf("no difference of kind %s was counted", kind)
			}
			return nil
		})
	}
}

// A change of Redis that did not go through the writer is found and followed: where the
// number of members tells, within two looks at the totals, else by the walk.
func TestChangesByHandAreFollowed(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	e.still = false // a score that was changed by hand makes Redis's own sum wrong
	b := e.newBoard(1, nil)
	b.produce(b.gifts(300, 100)...)
	s := e.start(ids(b), totalsEvery(often))
	s.waitOpen(b.id)
	key := e.names.BoardKey(b.id)
	best := e.redis.ZRangeArgs(t.Context(), redis.ZRangeArgs{Key: key, Start: 0, Stop: 0, Rev: true}).Val()[0]
	e.check(e.redis.ZIncrBy(t.Context(), key, 1, best).Err()) // neither the size nor a rank tells
	s.waitOpen(b.id)
	s.wantDifferences("score")
	s.waitReadopt(b)
	if s.counter("rankcache_origin_sum_wrong_total") != 1 {
		t.Error("the wrong sum of Redis was not counted")
	}
}

// Members that were removed by hand are found by the totals poller: the board is closed
// until a writer has added it up again.
func TestRemovalsByHandCloseTheBoard(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	e.still = false
	b := e.newBoard(1, nil)
	b.produce(b.gifts(300, 100)...)
	s := e.start(ids(b), totalsEvery(often), func(s *setup) { s.AuditRows = -1 })
	s.waitOpen(b.id)
	e.check(e.redis.ZRemRangeByRank(t.Context(), e.names.BoardKey(b.id), 0, 9).Err())
	s.waitClosed(b.id)
	s.waitReadopt(b)
}

// waitReadopt waits until the writers are asked to add up the board.
func (s *sidecar) waitReadopt(b *board) {
	s.env.t.Helper()
	testkit.Eventually(s.env.t, timeout, func() error {
		want := fmt.Sprint(b.state().Run)
		if got := b.redis.HGet(context.Background(), b.names.Readopt, string(b.id)).Val(); got != want {
			return fmt.Errorf("writers are to adopt run %q, want %s", got, want)
		}
		return nil
	})
}

// corrupt is a board one member of which is not what was applied.
type corrupt struct {
	*localboard.Board
	member atomic.Pointer[string]
}

func (c *corrupt) Snapshot() (rankcache.Stamp, iter.Seq[[]rankcache.Entry]) {
	stamp, pieces := c.Board.Snapshot()
	return stamp, func(yield func([]rankcache.Entry) bool) {
		for piece := range pieces {
			if piece = slices.Clone(piece); c.member.Load() != nil && piece[0].Member == *c.member.Load() {
				piece[0].Score += 0.5
			}
			if !yield(piece) {
				return
			}
		}
	}
}

func (c *corrupt) Reset() {
	c.Board.Reset()
	c.member.Store(nil)
}

// A member that changed in memory is found when the walk adds up what it has seen.
func TestCorruptMemoryIsFound(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	b := e.newBoard(1, nil)
	b.produce(b.gifts(300, 100)...)
	var wrong *corrupt
	s := e.start(ids(b), totalsEvery(often), func(s *setup) {
		s.wrap = func(local *localboard.Board) replay.Board { wrong = &corrupt{Board: local}; return wrong }
	})
	s.waitOpen(b.id)
	best := rowsOf(s.local(b.id), 1).Entries[0].Member
	wrong.member.Store(&best)
	s.waitClosed(b.id)
	s.wantDifferences("memory")
	s.waitOpen(b.id)
}

// Redis fails over to a replica without the last writes and gives their seqs out
// again: the board follows, whether the lower total or a reused seq is seen first.
func TestFailoverThatLosesWrites(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]option{
		"seen by the total":      {totalsEvery(often), auditEvery(-1)},
		"seen by the seqs":       {totalsEvery(time.Hour), auditEvery(-1), func(s *setup) { s.AuditRows = -1 }},
		"seen by whatever first": {totalsEvery(often), auditEvery(often)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, testkit.Kafka(t))
			e.still = false // it may open between the loss and what is written then
			b := e.newBoard(1, nil)
			b.produce(b.gifts(200, 40)...)
			s := e.start(ids(b), opts...)
			s.waitOpen(b.id)
			saved := b.dump()
			b.produce(b.gifts(30, 40)...)
			s.waitOpen(b.id)
			b.restore(saved)
			us := b.gifts(45, 40)
			for i := range us {
				us[i].OrderID = "again" + us[i].OrderID
			}
			b.produce(us...)
			if name == "seen by the seqs" {
				s.waitClosed(b.id)
				s.wantDifferences("refuted")
				return // without totals it can't open again
			}
			s.waitOpen(b.id)
			if n := s.counter("rankcache_audit_differences_total"); n == 0 {
				t.Error("the loss was not noticed")
			}
			b.produce(b.gifts(10, 40)...)
			s.waitOpen(b.id)
		})
	}
}

// dump returns the board as Redis has it, with its seq.
func (b *board) dump() map[string]string {
	b.t.Helper()
	all := map[string]string{}
	for _, key := range []string{b.names.BoardKey(b.id), b.names.MetaKey(b.id)} {
		value, err := b.redis.Dump(context.Background(), key).Result()
		b.check(err)
		all[key] = value
	}
	return all
}

// restore is a failover to a Redis that has what was dumped.
func (b *board) restore(all map[string]string) {
	b.t.Helper()
	pipe := b.redis.TxPipeline()
	for key, value := range all {
		pipe.RestoreReplace(context.Background(), key, 0, value)
	}
	_, err := pipe.Exec(context.Background())
	b.check(err)
	b.seq = b.state().Seq
}

// A board that was deleted in Redis is gone here too, and one of the same name
// and topic begins with nothing of it, also in a sidecar that replays both.
func TestBoardDeletedInRedis(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	b := e.newBoard(1, nil)
	b.produce(b.gifts(2000, 40)...) // more than the ring of recent seqs holds
	s := e.start(ids(b), totalsEvery(often), auditEvery(often))
	s.waitOpen(b.id)
	e.check(e.redis.Del(t.Context(), e.names.BoardKey(b.id), e.names.MetaKey(b.id)).Err())
	s.waitGone(b.id)
	s.wantDifferences("gone")
	b.seq = 0
	b.produce(b.gifts(20, 60)...)
	s.waitOpen(b.id)
	e.start(ids(b)).waitOpen(b.id)
}

// waitGone waits until the board is not answered here any more.
func (s *sidecar) waitGone(id rankcache.BoardID) {
	s.env.t.Helper()
	testkit.Eventually(s.env.t, timeout, func() error {
		if _, open := s.boards.Get(id); open {
			return errors.New("still open")
		}
		return nil
	})
}

// FLUSHALL stands for a Redis that restarted empty: the boards are lost until they begin anew.
func TestRedisFlushed(t *testing.T) {
	t.Parallel()
	cache := testkit.StartRedis(t, servers.RedisOptions{})
	e := newEnvOn(t, testkit.Kafka(t), cache.Addr())
	a, b := e.newBoard(1, nil), e.newBoard(1, nil)
	a.produce(a.gifts(100, 40)...)
	b.produce(b.gifts(100, 40)...)
	s := e.start(ids(a, b), totalsEvery(often))
	s.waitOpen(a.id)
	s.waitOpen(b.id)
	e.still = false // they may open again while the next changes are made
	e.check(e.redis.FlushAll(t.Context()).Err())
	a.seq, b.seq = 0, 0
	a.produce(a.gifts(150, 40)...)
	b.produce(b.gifts(10, 40)...)
	s.waitOpen(a.id)
	s.waitOpen(b.id)
}

// A recreated topic whose updates are read before its id is seen must not add
// them to the old board.
func TestRecreatedTopicIsSeenBySeqs(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kfake(t).Addr())
	b := e.newBoard(1, nil)
	b.produce(b.gifts(50, 20)...)
	s := e.start(ids(b), auditEvery(often), totalsEvery(often))
	s.waitOpen(b.id)
	e.still = false // it may open again while the next changes are made
	b.recreate()
	b.produce(b.gifts(120, 30)...)
	s.waitClosed(b.id)
	s.waitOpen(b.id)
	b.produce(b.gifts(5, 30)...)
	s.waitOpen(b.id)
}

// The audit of a board that is written to all the time finds nothing.
func TestAuditUnderWrites(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	e.still = false
	b := e.newBoard(1, nil)
	b.produce(b.gifts(500, 300)...)
	s := e.start(ids(b), auditEvery(time.Millisecond), totalsEvery(often))
	s.waitOpen(b.id)
	for b.seq < 8000 {
		b.produce(b.gifts(1+int(b.seq%37), 300)...)
	}
	s.waitOpen(b.id)
	testkit.Eventually(t, timeout, func() error {
		if st := s.status(b.id); st.Audit.Checks < 200 {
			return fmt.Errorf("%+v: want 200 comparisons", st.Audit)
		}
		return nil
	})
	st := s.status(b.id)
	t.Logf("%+v", st.Audit)
	if st.Audit.Differences != 0 || s.closings(b.id) != 0 {
		t.Errorf("%+v, closed %d times: false alarm", st.Audit, s.closings(b.id))
	}
}

// Readers never see a board that is half filled, neither those that look it up
// each time nor those that keep it in hand.
func TestReadersSeeNoHalfBuiltBoard(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	e.still = false
	const members = 400
	b := e.newBoard(1, nil)
	var us []wire.Update
	for i := range members {
		us = append(us, b.incr(fmt.Sprint("m", i), float64(i)))
	}
	b.produce(us...)
	s := e.start(ids(b), auditEvery(often), totalsEvery(often))
	s.waitOpen(b.id)
	stop, done, kept := make(chan struct{}), make(chan int, 2), s.local(b.id)
	read := func(board func() *localboard.Board) {
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				done <- n
				return
			default:
			}
			if local := board(); local != nil {
				p := rowsOf(local, members+50)
				if p.At.IsZero() { // emptied: the reader asks Redis
					continue
				}
				if p.Members != members || len(p.Entries) != members {
					t.Errorf("a board of %d members, %d rows", p.Members, len(p.Entries))
				}
			}
		}
	}
	go read(func() *localboard.Board { return kept })
	go read(func() *localboard.Board {
		local, _ := s.boards.Get(b.id)
		return local
	})
	for range 4 {
		saved := b.dump()
		b.produce(b.risen(20, members, 3)...)
		s.waitOpen(b.id)
		before := s.closings(b.id)
		b.restore(saved)
		again := b.risen(25, members, 4)
		for i := range again {
			again[i].OrderID = fmt.Sprint("again", before, "-", i)
		}
		b.produce(again...)
		s.waitOpen(b.id)
		if s.closings(b.id) == before {
			t.Error("the board was not filled again")
		}
	}
	close(stop)
	t.Logf("%d and %d reads, %+v", <-done, <-done, s.status(b.id).Audit)
}

// risen is gifts to members that are there.
func (b *board) risen(n, members int, by float64) (us []wire.Update) {
	for i := range n {
		us = append(us, b.incr(fmt.Sprint("m", (i*37+int(b.seq))%members), by))
	}
	return us
}

// A board without seqs that is found to be wrong is filled from its log again.
func TestBoardsWithoutSeqsAreHealed(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	b := e.newBoard(1, nil)
	invite := func(inviter, invitee int) {
		u := wire.Update{Board: b.id, Member: fmt.Sprint(inviter), Op: wire.OpIncr, Delta: 1, OrderID: fmt.Sprint(invitee)}
		e.check(e.redis.ZIncrBy(t.Context(), e.names.BoardKey(b.id), 1, u.Member).Err())
		e.check(e.redis.Incr(t.Context(), "{"+string(b.id)+"}:count").Err())
		b.produce(u)
	}
	for i := range 40 {
		invite(1000+i%7, i)
	}
	counted := e.start(ids(b), totalIn(replay.TotalOrders, "key:{<board>}:count"), auditEvery(often))
	none := e.start(ids(b), totalIn(replay.TotalNone, "none"), auditEvery(often))
	for _, s := range []*sidecar{counted, none} {
		s.waitOpen(b.id)
		local := s.local(b.id)
		local.Apply([]wire.Update{{Board: b.id, Member: "1000", Op: wire.OpSet, Score: 77, OrderID: "by hand"}})
		local.Publish()
	}
	for _, s := range []*sidecar{counted, none} {
		s.waitClosed(b.id)
		s.waitOpen(b.id)
	}
	invite(1000, 99)
	for _, s := range []*sidecar{counted, none} {
		s.waitOpen(b.id)
		if n := s.events("open", b.id); n != 2 {
			t.Errorf("opened %d times, want 2: %q", n, s.boards.noted())
		}
	}
}

// The age of a copy grows while Redis or Kafka can't be reached, and only then.
func TestAgeGrowsWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	cache := testkit.StartRedis(t, servers.RedisOptions{})
	e := newEnvOn(t, testkit.Kafka(t), cache.Addr())
	b := e.newBoard(1, nil)
	b.produce(b.gifts(20, 10)...)
	s := e.start(ids(b), totalsEvery(often), auditEvery(often))
	s.waitOpen(b.id)
	s.waitCurrent(b.id)
	e.check(cache.Pause())
	paused := time.Now()
	s.staysOld(b.id, paused)
	e.check(cache.Resume())
	s.waitCurrent(b.id)
	if n := s.closings(b.id); n != 0 {
		t.Error("a Redis that does not answer closed the board")
	}
}

func TestAgeGrowsWhileKafkaIsAway(t *testing.T) {
	t.Parallel()
	kafka := testkit.StartKafka(t, servers.KafkaOptions{})
	e := newEnv(t, kafka.Addr())
	b := e.newBoard(1, nil)
	b.produce(b.gifts(20, 10)...)
	s := e.start(ids(b), totalsEvery(often), auditEvery(often))
	s.waitOpen(b.id)
	s.waitCurrent(b.id)
	e.check(kafka.Pause())
	u := b.incr("late", 1) // in Redis, and not in the log
	missed := time.Now()
	s.staysOld(b.id, missed)
	e.check(kafka.Resume())
	b.produce(u)
	s.waitCurrent(b.id)
	s.waitOpen(b.id)
	if n := s.closings(b.id); n != 0 {
		t.Error("a Kafka that does not answer closed the board")
	}
}

// staysOld wants the board open and not marked as current after t, until its age
// has grown to a second.
func (s *sidecar) staysOld(id rankcache.BoardID, t time.Time) {
	s.env.t.Helper()
	testkit.Eventually(s.env.t, timeout, func() error {
		local := s.local(id)
		if at := local.CurrentAt(); at.After(t) {
			s.env.t.Fatalf("current %v after it could be known", at.Sub(t))
		} else if age := time.Since(at); age < time.Second {
			return fmt.Errorf("age %v", age)
		}
		return nil
	})
}
