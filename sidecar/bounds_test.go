package sidecar

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/sidecar/internal/fixture"
)

// TestBoundsChoose has for each bound whether the copy answers or Redis, which is at
// seq 1000.
func TestBoundsChoose(t *testing.T) {
	for _, c := range []struct {
		name   string
		q      Query
		age    time.Duration // of the copies
		limit  int
		source Source
	}{
		{"no bounds", Query{Board: "local"}, time.Hour, 10, SourceLocal},
		{"young enough", Query{Board: "local", MaxAge: time.Second}, time.Second, 10, SourceLocal},
		{"too old", Query{Board: "local", MaxAge: time.Second}, time.Second + 1, 10, SourceRedis},
		{"seq reached", Query{Board: "local", MinSeq: 917}, time.Hour, 10, SourceLocal},
		{"seq not reached", Query{Board: "local", MinSeq: 918}, 0, 10, SourceRedis},
		{"seq reached but too old", Query{Board: "local", MinSeq: 917, MaxAge: 1}, time.Second, 10, SourceRedis},
		{"behind the head", Query{Board: "local", MinSeq: 917}, 0, 500, SourceLocal},
		{"hot, reached", Query{Board: "hot", MinSeq: 33, MaxAge: time.Second}, time.Second, 10, SourceHot},
		{"hot, not reached", Query{Board: "hot", MinSeq: 34}, 0, 10, SourceRedis},
		{"hot, too old", Query{Board: "hot", MaxAge: time.Second}, time.Minute, 10, SourceRedis},
		{"beyond the hot page", Query{Board: "hot", MaxAge: time.Second, Wait: time.Second}, time.Minute, 101, SourceRedis},
		{"small", Query{Board: "any", MinSeq: 1000, MaxAge: 1, Wait: time.Second}, 0, 10, SourceRedis},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env, began := newEnv(), time.Now()
				env.Origin.Seq.Store(1000)
				env.Local.At = began.Add(-c.age)
				env.Hot.At = began.Add(-c.age)
				r := env.reader()
				a, err := r.Top(context.Background(), c.q, c.limit)
				if err != nil || a.Source != c.source || a.Seq < c.q.MinSeq {
					t.Errorf("page: %v at seq %d, %v; want %v", a.Source, a.Seq, err, c.source)
				}
				if c.source == SourceHot {
					c.source = SourceRedis // standings are not in a page
				}
				s, err := r.Standings(context.Background(), c.q, nil, []string{fixture.Member(1)})
				if err != nil || s.Source != c.source || s.Seq < c.q.MinSeq && c.q.Board != "hot" {
					t.Errorf("standing: %v at seq %d, %v; want %v", s.Source, s.Seq, err, c.source)
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
		q := Query{Board: "local", MinSeq: 918, Wait: time.Second}
		var done sync.WaitGroup
		done.Go(func() {
			a, err := r.Top(context.Background(), q, 50)
			if err != nil || a.Source != SourceLocal || a.Seq != 918 || a.Entries[0].Score != fixture.ScoreAt(918, env.Local.N, 0) {
				t.Errorf("page: %v at seq %d, %v", a.Source, a.Seq, err)
			}
		})
		done.Go(func() {
			a, rank, err := r.Around(context.Background(), q, fixture.Member(3), 1)
			if err != nil || a.Source != SourceLocal || a.Seq != 918 || rank != 4 {
				t.Errorf("around: %v at seq %d, %v", a.Source, a.Seq, err)
			}
		})
		done.Wait()
		if took := time.Since(began); took > 30*time.Millisecond+2*pollEvery {
			t.Errorf("took %v, want little more than 30 ms", took)
		}
		if n := env.Origin.Calls.Load(); n != 0 || r.waits.n.Load() != 0 {
			t.Errorf("%d calls to Redis, %d still waiting", n, r.waits.n.Load())
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
			_, err := r.Top(ctx, Query{Board: "local", MinSeq: 918, Wait: wait}, 50)
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
		r.waits.n.Store(maxWaiters)
		if err := ask(t.Context(), time.Second, 0); err != nil || r.waits.n.Load() != maxWaiters {
			t.Errorf("too many wait: %v, %d", err, r.waits.n.Load())
		}
		r.waits.n.Store(0)
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
		a, err := env.reader().Top(t.Context(), Query{Board: "local", MinSeq: 918, Wait: time.Second}, 50)
		if err != nil || a.Source != SourceRedis || time.Since(began) > 20*time.Millisecond {
			t.Errorf("%v, %v after %v", a.Source, err, time.Since(began))
		}
	})
}

// slowOrigin is Redis that answers late, with its state at the time of the call.
type slowOrigin struct {
	*fixture.Origin
	takes time.Duration
}

func (o *slowOrigin) Page(_ context.Context, _ rankcache.BoardID, start, limit int, order rankcache.Direction) (rankcache.Page, error) {
	p := o.look().Page(start, limit, order)
	p.At = time.Now()
	time.Sleep(o.takes)
	return p, nil
}

func (o *slowOrigin) Around(_ context.Context, _ rankcache.BoardID, m string, n int, order rankcache.Direction) (rankcache.Page, int, error) {
	p, rank, ok := o.look().Around(m, n, order)
	p.At = time.Now()
	time.Sleep(o.takes)
	if !ok {
		return p, 0, fmt.Errorf("%.20q: %w", m, rankcache.ErrUnknownMember)
	}
	return p, rank, nil
}

func (o *slowOrigin) look() *fixture.Board {
	o.Calls.Add(1)
	return fixture.NewBoard("", int(o.N.Load()), o.Seq.Load())
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
			if a, err := r.Top(t.Context(), Query{Board: "any"}, 10); err != nil || a.Seq != 12 {
				t.Errorf("a read before the write: seq %d, %v", a.Seq, err)
			}
		})
		time.Sleep(50 * time.Millisecond)
		env.Origin.Seq.Store(13)
		for range 1000 {
			done.Go(func() {
				if a, err := r.Top(t.Context(), Query{Board: "any", MinSeq: 13}, 10); err != nil || a.Seq != 13 {
					t.Errorf("a read after the write: seq %d, %v", a.Seq, err)
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
			if _, _, err := r.Around(t.Context(), Query{Board: "any"}, fixture.Member(3), 1); !errors.Is(err, rankcache.ErrUnknownMember) {
				t.Errorf("a read before the write: %v", err)
			}
		})
		time.Sleep(50 * time.Millisecond)
		env.Origin.N.Store(4)
		env.Origin.Seq.Store(13)
		_, rank, err := r.Around(t.Context(), Query{Board: "any", MinSeq: 13}, fixture.Member(3), 1)
		if err != nil || rank != 4 {
			t.Errorf("a read after the write: rank %d, %v", rank, err)
		}
		_, _, err = r.Around(t.Context(), Query{Board: "any", MinSeq: 13}, "nobody", 1)
		if !errors.Is(err, rankcache.ErrUnknownMember) {
			t.Errorf("a member that is absent: %v", err)
		}
		_, _, err = r.Around(t.Context(), Query{Board: "any", MinSeq: 14}, "nobody", 1)
		if !errors.Is(err, ErrNotReached) {
			t.Errorf("a member that may be there at a later seq: %v", err)
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
				a, err := r.Top(t.Context(), Query{Board: "any", MaxAge: age}, 10)
				if err != nil || came.Sub(a.At) > age || time.Since(came) != takes {
					t.Errorf("max age %v: age %v after %v, %v", age, came.Sub(a.At), time.Since(came), err)
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

// rewound is a board that began anew after it was found fresh enough.
type rewound struct{ *fixture.Board }

func (b rewound) Top() *rankcache.Top { return fixture.NewTop("local", b.N, 10, 5000) }

func TestCopyBeginsAnew(t *testing.T) {
	env := newEnv()
	env.Origin.Seq.Store(6000)
	cfg := env.config()
	cfg.Boards = fixture.Boards[Board]{"local": rewound{env.Local}}
	r := readerOf(t, cfg)
	q := Query{Board: "local", MinSeq: 918}
	if a, err := r.Page(t.Context(), &q, 400, 50); err != nil || a.Source != SourceRedis {
		t.Errorf("page: %v at %d, %v", a.Source, a.Seq, err)
	}
	if s, err := r.Standings(t.Context(), q, nil, []string{fixture.Member(1)}); err != nil || s.Source != SourceRedis {
		t.Errorf("standing: %v at %d, %v", s.Source, s.Seq, err)
	}
	if a, _, err := r.Around(t.Context(), q, fixture.Member(1), 1); err != nil || a.Source != SourceRedis {
		t.Errorf("around: %v at %d, %v", a.Source, a.Seq, err)
	}
}
