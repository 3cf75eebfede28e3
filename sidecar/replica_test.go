package sidecar

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
)

// lagging is an origin that reads from a replica, of three seconds ago and at seq 12, what may be of that, and from the primary, at seq 13 or more, all else.
type lagging struct {
	mu    sync.Mutex
	asked []bool        // whether for the primary
	seq   uint64        // of the primary
	slow  time.Duration // that it takes in addition
}

func (l *lagging) Read(_ context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	l.mu.Lock()
	l.asked = append(l.asked, qs[0].Primary)
	seq := max(l.seq, 13)
	l.mu.Unlock()
	if qs[0].Primary {
		time.Sleep(l.slow)
	}
	time.Sleep(100 * time.Millisecond)
	for i := range qs {
		q, now := &qs[i], time.Now()
		if q.Primary || q.MinSeq > 12 || q.MaxAge != 0 && q.MaxAge < 3*time.Second {
			as[i].Begin(q, rankcache.SourceRedis, rankcache.Stamp{State: rankcache.State{Seq: seq}, Members: 2, At: now}, now)
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

// TestFlightOfReplicaBeforeACallToThePrimary: a call to the primary that began before the caller came is not the last word.
func TestFlightOfReplicaBeforeACallToThePrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env, origin := newEnv(), &lagging{slow: 400 * time.Millisecond}
		cfg := env.config()
		cfg.Origin = origin
		r := readerOf(t, cfg)
		var done sync.WaitGroup
		read := func(at time.Duration, q rankcache.Query, want uint64) {
			q.Board = "any"
			done.Go(func() {
				time.Sleep(at)
				if a := top(t.Context(), r, q, 10); a.Err != nil || a.Seq < want {
					t.Errorf("at %v, %+v: seq %d, %v", at, q, a.Seq, a.Err)
				}
			})
		}
		read(0, rankcache.Query{}, 12)
		read(10*time.Millisecond, rankcache.Query{MinSeq: 13}, 13) // asks the primary after 100 ms
		read(150*time.Millisecond, rankcache.Query{}, 12)
		time.Sleep(200 * time.Millisecond)
		origin.mu.Lock()
		origin.seq = 14
		origin.mu.Unlock()
		read(0, rankcache.Query{MinSeq: 14}, 14) // joins the call of 150 ms, and then that to the primary
		done.Wait()
	})
}
