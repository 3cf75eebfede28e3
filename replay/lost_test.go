package replay_test

import (
	"fmt"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
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
			one.produce(one.gifts(5, 10)...) // a later life
			s.waitOpen(one.id)
			e.check(s.equal(one.id))
			if st := s.status(two.id); st.State != rankcache.StateLost {
				t.Errorf("the other: %+v", st)
			}
		})
	}
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
