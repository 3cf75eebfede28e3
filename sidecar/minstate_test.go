package sidecar

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/internal/testkit/fixture"
)

// withoutSum returns s as a writer answers it while the sum is unknown.
func withoutSum(s rankcache.State) rankcache.State { return rankcache.State{Run: s.Run, Seq: s.Seq} }

// lasting has a super-hot board of a durable class.
const lasting = fixture.Rooms + `
  - {match: lasting, mode: super-hot}
classes:
  - {name: lasting, board: lasting, period: none, ops: [incr], durable: true}
`

// TestMinStateDecides has for each min_state the source that answers, or the error.
// The local board is at seq 917 and remembers the sums from 900 on; the hot page is at seq
// 33; Redis is at redisAt.
func TestMinStateDecides(t *testing.T) {
	written := fixture.Written
	earlier, later := fixture.History{Run: written.Run - 1}, fixture.History{Run: written.Run + 1}
	other := fixture.History{Run: written.Run, Salt: 1} // the same run after Redis lost writes
	const lost, unknown = rankcache.Source(99), rankcache.Source(98)
	for _, c := range []struct {
		name    string
		board   rankcache.BoardID
		min     rankcache.State
		redisAt uint64
		redis   fixture.History
		source  rankcache.Source
		calls   int64
	}{
		{"the copy's own state", "local", written.StateAt(917), 1000, written, rankcache.SourceLocal, 0},
		{"a recent one", "local", written.StateAt(900), 1000, written, rankcache.SourceLocal, 0},
		{"without a sum", "local", withoutSum(written.StateAt(5)), 1000, written, rankcache.SourceLocal, 0},
		{"another sum in the ring", "local", other.StateAt(910), 1000, written, lost, 0},
		{"another sum at the head", "local", other.StateAt(917), 1000, written, lost, 0},
		{"a run that has ended", "local", earlier.StateAt(900), 1000, written, unknown, 1},
		{"a run that has ended, without a sum", "local", withoutSum(earlier.StateAt(900)), 1000, written, unknown, 1},
		{"older than the ring", "local", written.StateAt(899), 1000, written, rankcache.SourceRedis, 1},
		{"older than the ring, Redis is of a later run", "local", written.StateAt(899), 1000, later, unknown, 1},
		{"older than the ring, durable", "lasting", written.StateAt(899), 1000, written, rankcache.SourceLocal, 0},
		{"another sum in the ring, durable", "lasting", other.StateAt(910), 1000, written, lost, 0},
		{"a run that has ended, durable", "lasting", earlier.StateAt(899), 1000, written, unknown, 1},
		{"the copy is behind", "local", written.StateAt(918), 918, written, rankcache.SourceRedis, 1},
		{"the copy is behind, Redis is further", "local", written.StateAt(918), 919, written, rankcache.SourceRedis, 1},
		{"the copy is behind, Redis has another sum", "local", written.StateAt(918), 918, other, lost, 1},
		{"the copy is behind, Redis has lost it", "local", written.StateAt(918), 917, written, lost, 1},
		{"the copy is of the run before", "local", later.StateAt(918), 918, later, rankcache.SourceRedis, 1},
		{"neither has the run yet", "local", later.StateAt(918), 918, written, lost, 1},
		{"hot, reached", "hot", written.StateAt(33), 1000, written, rankcache.SourceHot, 0},
		{"hot, beyond", "hot", written.StateAt(5), 1000, written, rankcache.SourceHot, 0},
		{"hot, behind", "hot", written.StateAt(34), 34, written, rankcache.SourceRedis, 1},
		{"hot, another sum: Redis decides", "hot", other.StateAt(33), 33, other, rankcache.SourceRedis, 1},
		{"hot, another run: Redis decides", "hot", earlier.StateAt(33), 33, written, unknown, 1},
		{"small", "any", written.StateAt(33), 33, written, rankcache.SourceRedis, 1},
		{"small, another sum", "any", other.StateAt(33), 33, written, lost, 1},
		{"small, further", "any", written.StateAt(33), 34, written, rankcache.SourceRedis, 1},
		{"small, a later run", "any", written.StateAt(33), 34, later, unknown, 1},
		{"small, no state in Redis", "any", written.StateAt(33), 33, fixture.History{}, lost, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := newEnv()
			env.Local.Oldest = 900
			env.Origin.Seq.Store(c.redisAt)
			env.Origin.History = c.redis
			cfg := env.config()
			cfg.Tiers, cfg.Boards = fixture.Tiers(lasting), fixture.Boards[Board]{"local": env.Local, "lasting": env.Local}
			a := top(t.Context(), readerOf(t, cfg), rankcache.Query{Board: c.board, MinState: c.min}, 10)
			if c.source == unknown {
				var both *UnknownStateError
				if !errors.Is(a.Err, ErrUnknownState) || !errors.As(a.Err, &both) || both.Want != c.min || both.Have != c.redis.StateAt(c.redisAt) {
					t.Errorf("want a state that nobody knows, got seq %d and %v", a.Seq, a.Err)
				}
			} else if c.source == lost {
				var both *WriteLostError
				if !errors.Is(a.Err, ErrWriteLost) || !errors.As(a.Err, &both) || both.Want != c.min || both.Have == c.min {
					t.Errorf("want a write that is lost, got seq %d and %v", a.Seq, a.Err)
				}
			} else if a.Err != nil || a.Source != c.source || a.Seq < c.min.Seq || a.Run != c.min.Run {
				t.Errorf("answered by %v with %v, %v; want %v", a.Source, a.State, a.Err, c.source)
			}
			if n := env.Origin.Calls.Load(); n != c.calls {
				t.Errorf("%d calls of Redis, want %d", n, c.calls)
			}
		})
	}
}

// TestMinStateOfEachRead: members are answered under the same rule as pages.
func TestMinStateOfEachRead(t *testing.T) {
	env := newEnv()
	env.Origin.Seq.Store(33)
	r := env.reader()
	other := fixture.History{Run: fixture.Written.Run, Salt: 1}
	for _, board := range []rankcache.BoardID{"local", "any"} {
		seq := map[rankcache.BoardID]uint64{"local": 917, "any": 33}[board]
		for _, min := range []rankcache.State{fixture.Written.StateAt(seq), other.StateAt(seq)} {
			q := rankcache.Query{Board: board, MinState: min}
			later := q
			later.Start = 600
			for _, err := range []error{top(t.Context(), r, later, 10).Err, of(t.Context(), r, q, 0, fixture.Member(1)).Err, of(t.Context(), r, q, 5, fixture.Member(1)).Err} {
				if isLost := errors.Is(err, ErrWriteLost); isLost != (min == other.StateAt(seq)) || !isLost && err != nil {
					t.Errorf("%s at %v: %v", board, min, err)
				}
			}
		}
	}
}

// TestWaitForState: a copy that is behind is waited for, and a write that turns out to be
// lost ends the waiting.
func TestWaitForState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		r := env.reader()
		time.AfterFunc(30*time.Millisecond, func() { env.Local.Publish(918) })
		var done sync.WaitGroup
		ask := func(min rankcache.State, want error) {
			done.Go(func() {
				began := time.Now()
				a := top(context.Background(), r, rankcache.Query{Board: "local", MinState: min, Wait: time.Second}, 50)
				if !errors.Is(a.Err, want) || a.Err == nil && (a.Source != rankcache.SourceLocal || a.Seq != 918) {
					t.Errorf("%v: %v at %v, %v", min, a.Source, a.State, a.Err)
				}
				if took := time.Since(began); took < 30*time.Millisecond || took > 40*time.Millisecond {
					t.Errorf("%v: took %v, want little more than 30 ms", min, took)
				}
			})
		}
		ask(fixture.Written.StateAt(918), nil)
		ask(fixture.History{Run: fixture.Written.Run, Salt: 1}.StateAt(918), ErrWriteLost)
		done.Wait()
		if n := env.Origin.Calls.Load(); n != 0 {
			t.Errorf("%d calls of Redis", n)
		}
	})
}

// TestOlderFlightHasNotTheState: a call of Redis that began before the write is not proof
// that the write is lost.
func TestOlderFlightHasNotTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		r := slowReader(env)
		var done sync.WaitGroup
		done.Go(func() {
			if a := top(t.Context(), r, rankcache.Query{Board: "any"}, 10); a.Err != nil {
				t.Error(a.Err)
			}
		})
		time.Sleep(50 * time.Millisecond)
		env.Origin.Seq.Store(13)
		if a := top(t.Context(), r, rankcache.Query{Board: "any", MinState: fixture.Written.StateAt(13)}, 10); a.Err != nil || a.Seq != 13 {
			t.Errorf("seq %d, %v", a.Seq, a.Err)
		}
		done.Wait()
	})
}

func TestLostWriteTellsBothSides(t *testing.T) {
	want, have := fixture.Written.StateAt(7), rankcache.State{Run: 5, Seq: 6}
	for _, err := range []error{&WriteLostError{Want: want, Have: have, Source: rankcache.SourceRedis}, &UnknownStateError{Want: want, Have: have}} {
		for _, part := range []string{"run 1838429319476737 at seq 7 with the sum 000007000000", "Redis has run 5 at seq 6"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q lacks %q", err, part)
			}
		}
	}
}
