package sidecar

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
)

// lagging is an origin that reads from a replica, of three seconds ago and at seq 12, what may be of that, and from the primary, at seq 13, all else.
type lagging struct {
	mu    sync.Mutex
	asked []bool // whether for the primary
}

func (l *lagging) Read(_ context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	l.mu.Lock()
	l.asked = append(l.asked, qs[0].Primary)
	l.mu.Unlock()
	time.Sleep(100 * time.Millisecond)
	for i := range qs {
		q, now := &qs[i], time.Now()
		if q.Primary || q.MinSeq > 12 || q.MaxAge != 0 && q.MaxAge < 3*time.Second {
			as[i].Begin(q, rankcache.SourceRedis, rankcache.Stamp{State: rankcache.State{Seq: 13}, Members: 2, At: now}, now)
			continue
		}
		as[i].Begin(q, rankcache.SourceRedis, rankcache.Stamp{State: rankcache.State{Seq: 12}, Members: 1, At: now}, now.Add(-3*time.Second))
		as[i].Lags = true
	}
}

// TestFlightOfReplica: who joins a call that a replica answers, and asks for more than that, gets the primary's answer, also where the next call that
// is under way is one to the replica again.
func TestFlightOfReplica(t *testing.T) {
	for name, q := range map[string]rankcache.Query{"seq": {MinSeq: 13}, "age": {MaxAge: time.Second}} {
		q.Board = "any"
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env, origin := newEnv(), new(lagging)
				cfg := env.config()
				cfg.Origin = origin
				r := readerOf(t, cfg)
				var done sync.WaitGroup
				for range 3 { // one after the other
					done.Go(func() {
						for range 3 {
							if a := top(t.Context(), r, rankcache.Query{Board: "any"}, 10); a.Err != nil || a.Seq != 12 {
								t.Errorf("a read without bounds: seq %d, %v", a.Seq, a.Err)
							}
						}
					})
				}
				time.Sleep(50 * time.Millisecond)
				for range 100 {
					done.Go(func() {
						if a := top(t.Context(), r, q, 10); a.Err != nil || a.Seq != 13 {
							t.Errorf("%+v: seq %d, %v", q, a.Seq, a.Err)
						}
					})
				}
				done.Wait()
				primary := 0
				for _, is := range origin.asked {
					if is {
						primary++
					}
				}
				if primary != 1 {
					t.Errorf("the primary was asked %d times for 100 readers, want once", primary)
				}
			})
		})
	}
}
