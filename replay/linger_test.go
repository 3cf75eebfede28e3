package replay_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/origin"
	"rankcache/rooms"
	"rankcache/wire"
)

// setLife sets the life of the board in Redis, as the controller does.
func (b *board) setLife(life rankcache.Life) {
	b.t.Helper()
	value, err := b.redis.Get(b.t.Context(), b.names.MetaKey(b.id)).Result()
	b.check(err)
	meta, err := wire.ParseMeta(value)
	b.check(err)
	meta.Life = life
	b.check(b.redis.Set(b.t.Context(), b.names.MetaKey(b.id), wire.AppendMeta(nil, &meta), 0).Err())
}

// lookedAt is an origin that notes of which boards the states were read.
type lookedAt struct {
	redisOrigin
	mu sync.Mutex
	n  map[rankcache.BoardID]int
}

func newLooks(e *env) *lookedAt {
	return &lookedAt{redisOrigin: redisOrigin{origin.New(e.redis, e.names)}, n: make(map[rankcache.BoardID]int)}
}

func (o *lookedAt) Stamps(ctx context.Context, boards []rankcache.BoardID) ([]rankcache.Stamp, error) {
	o.mu.Lock()
	for _, b := range boards {
		o.n[b]++
	}
	o.mu.Unlock()
	return o.redisOrigin.Stamps(ctx, boards)
}

func (o *lookedAt) times(b rankcache.BoardID) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n[b]
}

// waitLife waits until readers see a life, at a seq.
func (s *sidecar) waitLife(b *board, life rankcache.Life, seq uint64) {
	b.t.Helper()
	testkit.Eventually(b.t, timeout, func() error {
		local, ok := s.boards.Get(b.id)
		if !ok {
			return fmt.Errorf("not open: %+v", s.status(b.id))
		}
		if a := rowsOf(local, 10); a.Life != life || a.Seq != seq {
			return fmt.Errorf("%v at %d, want %v at %d", a.Life, a.Seq, life, seq)
		}
		return nil
	})
}

// logOf has boards whose time is over or not, with or without finals.
func logOf(over, final bool) option {
	return func(s *setup) {
		own, last := s.Names.Topic, time.Now().Add(time.Hour)
		if over {
			last = time.Now().Add(-time.Second)
		}
		s.Log = func(id rankcache.BoardID) rooms.Log {
			return rooms.Log{Topic: own(id), First: last.Add(-2 * time.Hour), Last: last, Final: final}
		}
	}
}

// A copy says that its board is closed, as a new page of the same seq, once it has all of it. From then on it is neither
// looked at nor changed, unless its final is to come.
func TestClosedBoards(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	e.still = false
	b, other := e.newBoard(1, nil), e.newBoard(1, nil)
	looks := newLooks(e)
	b.produce(b.gifts(40, 10)...)
	s := e.start(ids(b, other), logOf(false, false), func(c *setup) { c.origin, c.TotalsEvery, c.AuditRows = looks, 20*time.Millisecond, -1 })
	s.waitOpen(b.id)
	s.waitOpen(other.id)
	late := b.incr("late", 1)
	b.setLife(rankcache.LifeClosed)
	s.looked(b.id, 3)
	s.waitLife(b, rankcache.LifeOpen, late.Seq-1) // it lacks a change
	local, _ := s.boards.Get(b.id)
	b.produce(late)
	s.waitLife(b, rankcache.LifeClosed, late.Seq)
	closed := rowsOf(local, 10)

	before := looks.times(b.id)
	stranger := late
	stranger.Member, stranger.Seq, stranger.Run = "stranger", late.Seq+1, late.Run+1
	b.produce(stranger)
	e.check(e.redis.Del(t.Context(), string(b.id), e.names.MetaKey(b.id)).Err())
	s.looked(other.id, 5)
	if n := looks.times(b.id) - before; n > 1 { // one may have been under way
		t.Errorf("a closed board was looked at %d times", n)
	}
	if a := rowsOf(local, 10); !slices.Equal(a.Entries, closed.Entries) || a.State != closed.State {
		t.Errorf("a closed board has changed: %v, was %v", a.Stamp, closed.Stamp)
	}
	if st := s.status(b.id); st.State != rankcache.StateOpen || st.Age > time.Second || st.Have != late.Seq || st.Want != late.Seq {
		t.Errorf("%+v", st)
	}
}

// A board with a final is looked at until it has that. That Redis has lost the close or the board does not count, as a
// failover may have taken it back; but if another state is closed then, it does.
func TestFinalBoards(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	e.still = false
	b := e.newBoard(1, nil)
	b.produce(b.gifts(40, 10)...)
	b.setLife(rankcache.LifeClosed)
	looks := newLooks(e)
	s := e.start(ids(b), logOf(false, true), func(c *setup) { c.origin, c.TotalsEvery, c.AuditRows = looks, 20*time.Millisecond, -1 })
	s.waitOpen(b.id)
	local, _ := s.boards.Get(b.id)
	if a := rowsOf(local, 10); a.Life != rankcache.LifeClosed {
		t.Errorf("it opened as %v", a.Life)
	}
	had, err := e.redis.Get(t.Context(), e.names.MetaKey(b.id)).Result()
	e.check(err)
	e.check(e.redis.Del(t.Context(), e.names.MetaKey(b.id)).Err())
	before := looks.times(b.id)
	testkit.Eventually(t, timeout, func() error {
		if n := looks.times(b.id) - before; n < 4 {
			return fmt.Errorf("looked at %d times", n)
		}
		return nil
	})
	if _, open := s.boards.Get(b.id); !open || slices.Contains(s.boards.noted(), "close "+string(b.id)) {
		t.Fatal("closed by what Redis has lost")
	}
	e.check(e.redis.Set(t.Context(), e.names.MetaKey(b.id), had, 0).Err())
	b.incr("m1", 1000) // what was applied again came to something else
	b.setLife(rankcache.LifeFinal)
	s.waitClosed(b.id)
	s.waitLife(b, rankcache.LifeFinal, b.seq)
	e.check(s.equal(b.id))
}

// A board that is named after its end is opened from Redis alone: there is no topic, and no Kafka is asked.
func TestEndedBoardsComeFromRedis(t *testing.T) {
	t.Parallel()
	e := newEnv(t, "127.0.0.1:1")
	e.still = false
	b, closed, unknown := e.newBoard(0, nil), e.newBoard(0, nil), e.newBoard(0, nil)
	b.gifts(40, 10)
	closed.gifts(40, 10)
	closed.setLife(rankcache.LifeClosed)
	s := e.start(ids(b, closed, unknown), logOf(true, false), func(c *setup) { c.TotalsEvery = 20 * time.Millisecond })
	s.waitOpen(b.id)
	s.waitLife(closed, rankcache.LifeClosed, closed.seq)
	s.waitReady()
	if st := s.status(unknown.id); st.State != rankcache.StateGivenUp {
		t.Errorf("a board of which Redis has nothing: %+v", st) // its final may have more
	}
	b.gifts(5, 10) // a writer was late
	s.waitClosed(b.id)
	s.waitOpen(b.id)
	if n := s.counter("rankcache_audit_differences_total"); n != 0 {
		t.Errorf("%v differences were counted", n)
	}
	b.setLife(rankcache.LifeClosed)
	s.waitLife(b, rankcache.LifeClosed, b.seq)
}

// scanned is an origin whose board changes while it is read for the first time.
type scanned struct {
	redisOrigin
	during func()
}

func (o *scanned) Scan(ctx context.Context, id rankcache.BoardID, fn func([]rankcache.Entry) error) (before, after rankcache.Stamp, err error) {
	return o.redisOrigin.Scan(ctx, id, func(es []rankcache.Entry) error {
		if change := o.during; change != nil {
			o.during = nil
			change()
		}
		return fn(es)
	})
}

// One that changes while it is read is read again: no update will tell what has changed.
func TestEndedBoardThatChangesWhileItIsRead(t *testing.T) {
	t.Parallel()
	e := newEnv(t, "127.0.0.1:1")
	b := e.newBoard(0, nil)
	b.gifts(40, 10)
	from := &scanned{redisOrigin{origin.New(e.redis, e.names)}, func() { b.incr("m1", 7) }}
	s := e.start(ids(b), logOf(true, false), func(c *setup) { c.origin = from })
	s.waitOpen(b.id)
	if n := s.counter("rankcache_replay_snapshots_total"); n != 1 {
		t.Errorf("%v loads have succeeded, want the second", n)
	}
}

// What is changed by hand on a closed board is found as on any other.
func TestClosedBoardThatIsChangedByHand(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	e.still = false
	b := e.newBoard(1, nil)
	b.produce(b.gifts(40, 10)...)
	b.setLife(rankcache.LifeClosed)
	s := e.start(ids(b), logOf(false, false), func(c *setup) { c.TotalsEvery, c.AuditRows = 20*time.Millisecond, 100_000 })
	s.waitOpen(b.id)
	e.check(e.redis.ZIncrBy(t.Context(), string(b.id), 1e6, "cheater").Err())
	s.waitClosed(b.id)
	rows, err := e.redis.ZRangeWithScores(t.Context(), string(b.id), 0, -1).Result()
	e.check(err)
	e.check(e.redis.Set(t.Context(), e.names.MetaKey(b.id), testkit.Meta(b.state().Run+1, 1, rows), 0).Err()) // as a writer that adopts it
	s.waitOpen(b.id)
}
