package sidecar

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/internal/testkit/fixture"
)

// TestBoundsChoose has for each bound whether the copy answers or Redis, which is at
// seq 1000.
func TestBoundsChoose(t *testing.T) {
	for _, c := range []struct {
		name   string
		q      rankcache.Query
		age    time.Duration // of the copies
		limit  int
		source rankcache.Source
	}{
		{"no bounds", rankcache.Query{Board: "local"}, time.Hour, 10, rankcache.SourceLocal},
		{"young enough", rankcache.Query{Board: "local", MaxAge: time.Second}, time.Second, 10, rankcache.SourceLocal},
		{"too old", rankcache.Query{Board: "local", MaxAge: time.Second}, time.Second + 1, 10, rankcache.SourceRedis},
		{"seq reached", rankcache.Query{Board: "local", MinSeq: 917}, time.Hour, 10, rankcache.SourceLocal},
		{"seq not reached", rankcache.Query{Board: "local", MinSeq: 918}, 0, 10, rankcache.SourceRedis},
		{"seq reached but too old", rankcache.Query{Board: "local", MinSeq: 917, MaxAge: 1}, time.Second, 10, rankcache.SourceRedis},
		{"behind the head", rankcache.Query{Board: "local", MinSeq: 917}, 0, 500, rankcache.SourceLocal},
		{"hot, reached", rankcache.Query{Board: "hot", MinSeq: 33, MaxAge: time.Second}, time.Second, 10, rankcache.SourceHot},
		{"hot, not reached", rankcache.Query{Board: "hot", MinSeq: 34}, 0, 10, rankcache.SourceRedis},
		{"hot, too old", rankcache.Query{Board: "hot", MaxAge: time.Second}, time.Minute, 10, rankcache.SourceRedis},
		{"beyond the hot page", rankcache.Query{Board: "hot", MaxAge: time.Second, Wait: time.Second}, time.Minute, 101, rankcache.SourceRedis},
		{"small", rankcache.Query{Board: "any", MinSeq: 1000, MaxAge: 1, Wait: time.Second}, 0, 10, rankcache.SourceRedis},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env, began := newEnv(), time.Now()
				env.Origin.Seq.Store(1000)
				env.Local.At = began.Add(-c.age)
				env.Hot.At = began.Add(-c.age)
				r := env.reader()
				a := top(context.Background(), r, c.q, c.limit)
				if a.Err != nil || a.Source != c.source || a.Seq < c.q.MinSeq {
					t.Errorf("page: %v at seq %d, %v; want %v", a.Source, a.Seq, a.Err, c.source)
				}
				if c.source == rankcache.SourceHot {
					c.source = rankcache.SourceRedis // standings are not in a page
				}
				s := of(context.Background(), r, c.q, 0, fixture.Member(1))
				if s.Err != nil || s.Source != c.source || s.Seq < c.q.MinSeq && c.q.Board != "hot" {
					t.Errorf("standing: %v at seq %d, %v; want %v", s.Source, s.Seq, s.Err, c.source)
				}
				if time.Since(began) != 0 {
					t.Errorf("waited %v where there is nothing to wait for", time.Since(began))
				}
			})
		})
	}
}

// TestWaitForCopy: the copy is waited for, so that Redis is not asked.
func TestWaitForCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env, began := newEnv(), time.Now()
		r := env.reader()
		time.AfterFunc(30*time.Millisecond, func() { env.Local.Publish(918) })
		q := rankcache.Query{Board: "local", MinSeq: 918, Wait: time.Second}
		var done sync.WaitGroup
		done.Go(func() {
			a := top(context.Background(), r, q, 50)
			if a.Err != nil || a.Source != rankcache.SourceLocal || a.Seq != 918 || a.Entries[0].Score != fixture.ScoreAt(918, env.Local.N, 0) {
				t.Errorf("page: %v at seq %d, %v", a.Source, a.Seq, a.Err)
			}
		})
		done.Go(func() {
			a := of(context.Background(), r, q, 3, fixture.Member(3))
			if a.Err != nil || a.Source != rankcache.SourceLocal || a.Seq != 918 || a.Own[0].Rank != 4 {
				t.Errorf("around: %v at seq %d, %v", a.Source, a.Seq, a.Err)
			}
		})
		done.Wait()
		if took := time.Since(began); took > 30*time.Millisecond+2*pollEvery {
			t.Errorf("took %v, want little more than 30 ms", took)
		}
		if n := env.Origin.Calls.Load(); n != 0 || r.bounds.waits.n.Load() != 0 {
			t.Errorf("%d calls to Redis, %d still waiting", n, r.bounds.waits.n.Load())
		}
	})
}

// TestWaitEnds: a reader that has waited long enough is answered by Redis, or gets an
// error if Redis is away.
func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		r := env.reader()
		ask := func(ctx context.Context, wait, took time.Duration) error {
			t.Helper()
			began := time.Now()
			err := top(ctx, r, rankcache.Query{Board: "local", MinSeq: 918, Wait: wait}, 50).Err
			if time.Since(began) != took {
				t.Errorf("waited %v, want %v", time.Since(began), took)
			}
			return err
		}
		err := ask(t.Context(), 100*time.Millisecond, 100*time.Millisecond)
		var not *NotReachedError
		if !errors.Is(err, ErrNotReached) || !errors.As(err, &not) || not.Have != 12 {
			t.Errorf("Redis behind: %v", err)
		}
		env.Origin.Seq.Store(0)
		if err := ask(t.Context(), 0, 0); !errors.Is(err, ErrNotReached) {
			t.Errorf("Redis without a seq: %v", err)
		}
		env.Origin.Seq.Store(918)
		if err := ask(t.Context(), time.Hour, MaxWait); err != nil {
			t.Errorf("Redis there: %v", err)
		}
		r.bounds.waits.n.Store(maxWaiters)
		if err := ask(t.Context(), time.Second, 0); err != nil || r.bounds.waits.n.Load() != maxWaiters {
			t.Errorf("too many wait: %v, %d", err, r.bounds.waits.n.Load())
		}
		r.bounds.waits.n.Store(0)
		time.AfterFunc(time.Second, r.EndWaits)
		if err := ask(t.Context(), 2*time.Second, time.Second); err != nil {
			t.Errorf("a reader still waits: %v", err)
		}
	})
}

// TestCopyVanishesWhileWaiting: a board that closes is not waited for.
func TestCopyVanishesWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env, began := newEnv(), time.Now()
		env.Origin.Seq.Store(918)
		time.AfterFunc(10*time.Millisecond, func() { env.Local.Head.Store(nil) })
		a := top(t.Context(), env.reader(), rankcache.Query{Board: "local", MinSeq: 918, Wait: time.Second}, 50)
		if a.Err != nil || a.Source != rankcache.SourceRedis || time.Since(began) > 20*time.Millisecond {
			t.Errorf("%v, %v after %v", a.Source, a.Err, time.Since(began))
		}
	})
}

// slowOrigin is Redis that answers late, with its state at the time of the call.
type slowOrigin struct {
	*fixture.Origin
	takes time.Duration
}

func (o *slowOrigin) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	o.Calls.Add(1)
	board := fixture.NewBoard("", int(o.N.Load()), o.Seq.Load())
	board.Head.Load().PublishedAt = time.Now()
	board.Read(ctx, qs, as)
	time.Sleep(o.takes)
}

func slowReader(env *testEnv) *Reader {
	cfg := env.config()
	cfg.Origin = &slowOrigin{env.Origin, 100 * time.Millisecond}
	r, err := NewReader(cfg, nil)
	if err != nil {
		panic(err)
	}
	return r
}

// TestOlderFlightIsNotEnough: a call to Redis is under way when a caller writes.
// A thousand readers that need that write join the call, which can't have seen it;
// together they make one more.
func TestOlderFlightIsNotEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		r := slowReader(env)
		var done sync.WaitGroup
		done.Go(func() {
			if a := top(t.Context(), r, rankcache.Query{Board: "any"}, 10); a.Err != nil || a.Seq != 12 {
				t.Errorf("a read before the write: seq %d, %v", a.Seq, a.Err)
			}
		})
		time.Sleep(50 * time.Millisecond)
		env.Origin.Seq.Store(13)
		for range 1000 {
			done.Go(func() {
				if a := top(t.Context(), r, rankcache.Query{Board: "any", MinSeq: 13}, 10); a.Err != nil || a.Seq != 13 {
					t.Errorf("a read after the write: seq %d, %v", a.Seq, a.Err)
				}
			})
		}
		done.Wait()
		if n := env.Origin.Calls.Load(); n != 2 {
			t.Errorf("%d calls to Redis, want 2", n)
		}
	})
}

// TestOlderFlightKnowsNoMember: a member that was not there when the flight
// asked, but is now, is found.
func TestOlderFlightKnowsNoMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		env.Origin.N.Store(3)
		r := slowReader(env)
		var done sync.WaitGroup
		done.Go(func() {
			if a := of(t.Context(), r, rankcache.Query{Board: "any"}, 3, fixture.Member(3)); a.Err != nil || a.Own[0].Rank != 0 {
				t.Errorf("a read before the write: %+v", a)
			}
		})
		time.Sleep(50 * time.Millisecond)
		env.Origin.N.Store(4)
		env.Origin.Seq.Store(13)
		a := of(t.Context(), r, rankcache.Query{Board: "any", MinSeq: 13}, 3, fixture.Member(3))
		if a.Err != nil || a.Own[0].Rank != 4 {
			t.Errorf("a read after the write: %+v", a)
		}
		if a := of(t.Context(), r, rankcache.Query{Board: "any", MinSeq: 13}, 3, "nobody"); a.Err != nil || a.Own[0].Rank != 0 {
			t.Errorf("a member that is absent: %+v", a)
		}
		if a := of(t.Context(), r, rankcache.Query{Board: "any", MinSeq: 14}, 3, "nobody"); !errors.Is(a.Err, ErrNotReached) {
			t.Errorf("a member that may be there at a later seq: %v", a.Err)
		}
		done.Wait()
	})
}

// TestMaxAgeSharesFlights: a flight that began within the age is shared, an older
// one is not.
func TestMaxAgeSharesFlights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		r := slowReader(env)
		var done sync.WaitGroup
		read := func(age, takes time.Duration) {
			done.Go(func() {
				came := time.Now()
				a := top(t.Context(), r, rankcache.Query{Board: "any", MaxAge: age}, 10)
				if a.Err != nil || came.Sub(a.At) > age || time.Since(came) != takes {
					t.Errorf("max age %v: age %v after %v, %v", age, came.Sub(a.At), time.Since(came), a.Err)
				}
			})
		}
		read(time.Second, 100*time.Millisecond)
		time.Sleep(50 * time.Millisecond)
		read(50*time.Millisecond, 50*time.Millisecond)  // joins
		read(49*time.Millisecond, 150*time.Millisecond) // joins, and asks again
		read(1, 150*time.Millisecond)                   // shares that
		done.Wait()
		if n := env.Origin.Calls.Load(); n != 2 {
			t.Errorf("%d calls to Redis, want 2", n)
		}
	})
}
