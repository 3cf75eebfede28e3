package sidecar

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/internal/testkit/fixture"
)

// TestStampede: 5,000 readers of one small board at once are one call to Redis,
// whatever they ask of it is the same.
func TestStampede(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		env.Origin.Hold = make(chan struct{})
		r := env.reader()
		const readers = 5000
		var answered sync.WaitGroup
		var pages sync.Map
		for range readers {
			answered.Go(func() {
				a := top(context.Background(), r, rankcache.Query{Board: "any"}, 50)
				if a.Err != nil || len(a.Entries) != 50 {
					t.Errorf("%d rows, %v", len(a.Entries), a.Err)
				}
				pages.Store(a.Kept, true)
			})
		}
		synctest.Wait() // all of them wait for Redis now
		close(env.Origin.Hold)
		answered.Wait()
		if n := env.Origin.Calls.Load(); n != 1 {
			t.Errorf("%d calls to Redis, want 1", n)
		}
		if n := sizeOf(&pages); n != 1 {
			t.Errorf("%d pages to encode, want 1", n)
		}
	})
}

func sizeOf(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}

// TestOverload: beyond the calls that run and those that may wait, readers get
// an error at once; none waits longer than the time-out.
func TestOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		env.limits = OriginLimits{Timeout: time.Second, Calls: 4, Queue: 6}
		env.Origin.Hold = make(chan struct{})
		defer close(env.Origin.Hold)
		r := env.reader()
		began := time.Now()
		var refusedAtOnce, unavailable, noPlace atomic.Int64
		var done sync.WaitGroup
		for i := range 25 { // 25 questions, all different
			done.Go(func() {
				err := top(context.Background(), r, rankcache.Query{Board: "any", Start: i}, 10).Err
				switch waited := time.Since(began); {
				case errors.Is(err, ErrOverloaded) && waited == 0:
					refusedAtOnce.Add(1)
				case errors.Is(err, rankcache.ErrUnavailable) && waited == time.Second:
					unavailable.Add(1)
				case errors.Is(err, ErrOverloaded) && waited == time.Second:
					noPlace.Add(1)
				default:
					t.Errorf("after %v: %v", waited, err)
				}
			})
		}
		done.Wait()
		// Whether a slot freed at the last moment is still taken is a matter of
		// the scheduler, so those two are counted together.
		if a, b := refusedAtOnce.Load(), unavailable.Load()+noPlace.Load(); a != 15 || b != 10 {
			t.Errorf("%d refused at once and %d after the time-out, want 15 and 10", a, b)
		}
		if n := env.Origin.Calls.Load(); n < 4 || n > 10 {
			t.Errorf("%d calls to Redis, want 4 to 10", n)
		}
	})
}

// TestFirstCallerLeaves: the flight serves the later callers, though the first one has
// gone.
func TestFirstCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		env.Origin.Hold = make(chan struct{})
		r := env.reader()
		first, leave := context.WithCancel(context.Background())
		var done sync.WaitGroup
		done.Go(func() {
			err := top(first, r, rankcache.Query{Board: "any"}, 10).Err
			if !errors.Is(err, rankcache.ErrUnavailable) || !errors.Is(err, context.Canceled) {
				t.Errorf("first caller: %v", err)
			}
		})
		synctest.Wait()
		done.Go(func() {
			if err := top(context.Background(), r, rankcache.Query{Board: "any"}, 10).Err; err != nil {
				t.Errorf("second caller: %v", err)
			}
		})
		synctest.Wait()
		leave()
		synctest.Wait()
		close(env.Origin.Hold)
		done.Wait()
		if n := env.Origin.Calls.Load(); n != 1 {
			t.Errorf("%d calls to Redis, want 1", n)
		}
	})
}

// TestErrorsAreNotKept: a call that failed is made again.
func TestErrorsAreNotKept(t *testing.T) {
	env := newEnv()
	r := env.reader()
	env.Origin.FailWith(errors.New("WRONGTYPE"))
	if err := top(context.Background(), r, rankcache.Query{Board: "any"}, 10).Err; err == nil {
		t.Fatal("no error")
	}
	env.Origin.FailWith(nil)
	if err := top(context.Background(), r, rankcache.Query{Board: "any"}, 10).Err; err != nil {
		t.Error(err)
	}
}

// TestMembersOfOneFlightAreApart: callers that share a flight may change their members, which
// are in room of their own.
func TestMembersOfOneFlightAreApart(t *testing.T) {
	env := newEnv()
	r := env.reader()
	own := make([]rankcache.Own, 0, 8)
	qs, as := []rankcache.Query{{Board: "any", Members: []string{fixture.Member(1)}}}, []rankcache.Answer{{Own: own}}
	if r.Read(context.Background(), qs, as); as[0].Err != nil {
		t.Fatal(as[0].Err)
	}
	if &as[0].Own[0] != &own[:1][0] {
		t.Error("the members are not in the caller's room")
	}
}

// faultyOrigin panics once, when it is let go.
type faultyOrigin struct {
	*fixture.Origin
	once sync.Once
}

func (o *faultyOrigin) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	o.Origin.Read(ctx, qs, as)
	o.once.Do(func() { panic("no such index") })
}

// TestPanicOfTheOrigin: it is the error of all callers of the flight, logged once
// with its stack, and not the end of the process.
func TestPanicOfTheOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		env := newEnv()
		env.Origin.Hold = make(chan struct{})
		cfg := env.config()
		cfg.Origin, cfg.Log = &faultyOrigin{Origin: env.Origin}, slog.New(slog.NewTextHandler(&log, nil))
		r := readerOf(t, cfg)
		var done sync.WaitGroup
		for range 100 {
			done.Go(func() {
				err := top(t.Context(), r, rankcache.Query{Board: "any"}, 10).Err
				if err != ErrFault { // with no details
					t.Errorf("%v, want %v", err, ErrFault)
				}
			})
		}
		synctest.Wait()
		close(env.Origin.Hold)
		done.Wait()
		if text := log.String(); strings.Count(text, "no such index") != 1 || !strings.Contains(text, "flight_test.go") {
			t.Errorf("logged: %s", text)
		}
		if err := top(t.Context(), r, rankcache.Query{Board: "any"}, 10).Err; err != nil || r.flights.waiting.Load() != 0 {
			t.Errorf("the next read: %v, %d calls left over", err, r.flights.waiting.Load())
		}
	})
}
