package replay_test

import (
	"fmt"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// TestLostBoards: boards that are gone together with what Redis was before are kept as they were, until Redis has them
// again; one that somebody has deleted is gone here, too.
func TestLostBoards(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	for _, loss := range []struct {
		name string
		lose func(*env) error
	}{
		{"FLUSHALL", func(e *env) error { return e.redis.FlushAll(t.Context()).Err() }},
		{"an empty master", func(*env) error {
			if err := server.Kill(); err != nil {
				return err
			}
			return server.Restart(t.Context())
		}},
	} {
		t.Run(loss.name, func(t *testing.T) {
			e := newEnvOn(t, testkit.Kafka(t), server.Addr())
			deleted, one, two := e.newBoard(1, nil), e.newBoard(1, nil), e.newBoard(1, nil)
			var ids []rankcache.BoardID
			for _, b := range []*board{deleted, one, two} {
				b.produce(b.gifts(50, 10)...)
				ids = append(ids, b.id)
			}
			s := e.start(ids, func(c *setup) { c.TotalsEvery = 50 * time.Millisecond })
			for _, id := range ids {
				s.waitOpen(id)
			}
			s.looked(one.id, 2) // while they are there
			e.check(e.redis.Del(t.Context(), string(deleted.id), e.names.MetaKey(deleted.id)).Err())
			s.waitClosed(deleted.id)
			before := s.counter("rankcache_audit_differences_total")
			was := s.status(one.id).Proof.State
			e.check(loss.lose(e))
			for _, b := range []*board{one, two} {
				testkit.Eventually(t, timeout, func() error {
					if st := s.status(b.id); st.State != rankcache.StateLost || st.Age == 0 {
						return fmt.Errorf("%+v", st)
					}
					return nil
				})
			}
			if now := s.status(one.id).Proof.State; now != was || s.counter("rankcache_replay_lost_boards") != 2 || s.counter("rankcache_audit_differences_total") != before {
				t.Errorf("state %v, was %v; %v lost, %v differences", now, was, s.counter("rankcache_replay_lost_boards"), s.counter("rankcache_audit_differences_total"))
			}
			one.produce(one.incr("m1", 5)) // a later life
			s.waitOpen(one.id)
			e.check(s.equal(one.id))
			if st := s.status(one.id); st.LostMembers < 5 || s.counter("rankcache_replay_lost_boards") != 2 {
				t.Errorf("of a life that was lost: %+v, %v lost", st, s.counter("rankcache_replay_lost_boards"))
			}
			if st := s.status(two.id); st.State != rankcache.StateLost {
				t.Errorf("the other: %+v", st)
			}
		})
	}
}

// TestLostBoardsThatAreWritten: a board that others write to before anybody has seen it gone shows its new life, and
// that Redis has lost the one before, until it has as many members again.
func TestLostBoardsThatAreWritten(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	e := newEnvOn(t, testkit.Kafka(t), server.Addr())
	lost, deleted := e.newBoard(1, nil), e.newBoard(1, nil)
	for _, b := range []*board{lost, deleted} {
		b.produce(b.ofMembers(10)...)
	}
	s := e.start([]rankcache.BoardID{lost.id, deleted.id}, func(c *setup) { c.TotalsEvery = time.Second })
	s.waitOpen(lost.id)
	s.waitOpen(deleted.id)
	s.looked(lost.id, 2)
	e.check(e.redis.Del(t.Context(), string(deleted.id), e.names.MetaKey(deleted.id)).Err())
	deleted.produce(deleted.ofMembers(3)...)
	testkit.Eventually(t, timeout, func() error { return s.equal(deleted.id) })
	if st := s.status(deleted.id); st.LostMembers != 0 {
		t.Errorf("a board that was deleted: %+v", st)
	}
	e.check(e.redis.FlushAll(t.Context()).Err())
	lost.produce(lost.ofMembers(3)...)
	testkit.Eventually(t, timeout, func() error {
		if st := s.status(lost.id); st.State != rankcache.StateOpen || st.LostMembers != 10 || s.counter("rankcache_replay_lost_boards") < 1 {
			return fmt.Errorf("%+v, %v lost", st, s.counter("rankcache_replay_lost_boards"))
		}
		return s.equal(lost.id)
	})
	lost.produce(lost.ofMembers(6)...)
	testkit.Eventually(t, timeout, func() error {
		if st := s.status(lost.id); st.LostMembers != 0 {
			return fmt.Errorf("%+v", st)
		}
		return nil
	})
}

// ofMembers returns an increment of each of n members.
func (b *board) ofMembers(n int) (us []wire.Update) {
	for i := range n {
		us = append(us, b.incr(fmt.Sprint("m", i), 5))
	}
	return us
}

// looked waits for looks at Redis.
func (s *sidecar) looked(id rankcache.BoardID, times int) {
	s.env.t.Helper()
	for range times {
		before := s.status(id).Proof.OriginAt
		testkit.Eventually(s.env.t, timeout, func() error {
			if at := s.status(id).Proof.OriginAt; !at.After(before) {
				return fmt.Errorf("looked at %v", at)
			}
			return nil
		})
	}
}
