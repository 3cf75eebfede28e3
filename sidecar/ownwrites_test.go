package sidecar

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/internal/testkit/fixture"
)

// TestOwnWrites has a member written at seq 918 through this process, while its local copy is at 917 and the hot page at
// 33, and reads it from a Redis in several states.
func TestOwnWrites(t *testing.T) {
	written, other, later := fixture.Written, fixture.History{Run: fixture.Written.Run, Salt: 1}, fixture.History{Run: fixture.Written.Run + 1}
	away := fmt.Errorf("%w: away", rankcache.ErrUnavailable)
	member := fixture.Member(3)
	for _, c := range []struct {
		name    string
		query   rankcache.Query
		redisAt uint64
		redis   fixture.History
		fails   error
		copyAt  time.Duration // when the copy comes to 918; 0: never
		source  rankcache.Source
		seq     uint64
		took    time.Duration
		err     error
	}{
		{"Redis answers after the wait", rankcache.Query{Board: "local", Members: []string{member}}, 918, written, nil, 0, rankcache.SourceRedis, 918, ownWait, nil},
		{"the copy comes in time", rankcache.Query{Board: "local", Members: []string{member}}, 918, written, nil, 7 * time.Millisecond, rankcache.SourceLocal, 918, 8 * time.Millisecond, nil},
		{"one of several members", rankcache.Query{Board: "local", Members: []string{fixture.Member(1), member}}, 920, written, nil, 0, rankcache.SourceRedis, 920, ownWait, nil},
		{"beside a page", rankcache.Query{Board: "local", Limit: 3, Members: []string{member}}, 918, written, nil, 0, rankcache.SourceRedis, 918, ownWait, nil},
		{"a page alone", rankcache.Query{Board: "local", Limit: 3}, 918, written, nil, 0, rankcache.SourceLocal, 917, 0, nil},
		{"another member", rankcache.Query{Board: "local", Members: []string{fixture.Member(4)}}, 918, written, nil, 0, rankcache.SourceLocal, 917, 0, nil},
		{"another board", rankcache.Query{Board: "tiny", Members: []string{fixture.Member(1)}}, 918, written, nil, 0, rankcache.SourceLocal, 7, 0, nil},
		{"a small board", rankcache.Query{Board: "small", Members: []string{member}}, 918, written, nil, 0, rankcache.SourceRedis, 918, 0, nil},
		{"a hot board", rankcache.Query{Board: "hot", Members: []string{member}}, 918, written, nil, 0, rankcache.SourceRedis, 918, 0, nil},
		{"beside the page of a hot board", rankcache.Query{Board: "hot", Limit: 3, Members: []string{member}}, 918, written, nil, 0, rankcache.SourceRedis, 918, ownWait, nil},
		{"Redis has lost it", rankcache.Query{Board: "local", Members: []string{member}}, 917, written, nil, 0, rankcache.SourceLocal, 917, ownWait, nil},
		{"Redis has another history", rankcache.Query{Board: "local", Members: []string{member}}, 918, other, nil, 0, rankcache.SourceRedis, 918, ownWait, nil},
		{"Redis has another run", rankcache.Query{Board: "local", Members: []string{member}}, 918, later, nil, 0, rankcache.SourceLocal, 917, ownWait, nil},
		{"Redis is away", rankcache.Query{Board: "local", Members: []string{member}}, 918, written, away, 0, rankcache.SourceLocal, 917, ownWait, nil},
		{"copies alone", rankcache.Query{Board: "local", Members: []string{member}, CopiesOnly: true}, 918, written, nil, 0, 0, 0, 0, rankcache.ErrNotKept},
		{"the caller's own bound", rankcache.Query{Board: "local", Members: []string{member}, MinState: written.StateAt(910)}, 918, written, nil, 0, rankcache.SourceLocal, 917, 0, nil},
		{"a longer wait of the caller's", rankcache.Query{Board: "local", Members: []string{member}, MinSeq: 5, Wait: 2 * ownWait}, 918, written, nil, 0, rankcache.SourceRedis, 918, 2 * ownWait, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newEnv()
				env.Local.Oldest = 900
				env.Origin.Seq.Store(c.redisAt)
				env.Origin.History = c.redis
				env.Origin.FailWith(c.fails)
				cfg := env.config()
				cfg.OwnWrites = true
				r := readerOf(t, cfg)
				for _, board := range []rankcache.BoardID{"local", "small", "hot"} {
					r.Wrote(board, member, written.StateAt(918))
					r.Wrote(board, member, written.StateAt(916)) // told late: it changes nothing
				}
				if c.copyAt > 0 {
					time.AfterFunc(c.copyAt, func() { env.Local.Publish(918) })
				}
				began, qs, as := time.Now(), []rankcache.Query{c.query}, make([]rankcache.Answer, 1)
				r.Read(t.Context(), qs, as)
				if a := &as[0]; !errors.Is(a.Err, c.err) || c.err == nil && (a.Source != c.source || a.Seq != c.seq) || time.Since(began) != c.took {
					t.Errorf("%v at %d after %v, %v; want %v at %d after %v, %v", a.Source, a.Seq, time.Since(began), a.Err, c.source, c.seq, c.took, c.err)
				}
				if qs[0].MinState != c.query.MinState || qs[0].Wait != c.query.Wait {
					t.Errorf("the query has become %+v", qs[0])
				}
			})
		})
	}
}

// TestOwnWritesAreForgotten: nobody waits for a write that Redis has lost more than once, and for none for long.
func TestOwnWritesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		env.Origin.Seq.Store(917)
		cfg := env.config()
		cfg.OwnWrites = true
		r := readerOf(t, cfg)
		read := func() time.Duration {
			began := time.Now()
			if a := of(t.Context(), r, rankcache.Query{Board: "local"}, 0, fixture.Member(3)); a.Err != nil || a.Seq != 917 {
				t.Error(a.Seq, a.Err)
			}
			return time.Since(began)
		}
		r.Wrote("local", fixture.Member(3), fixture.Written.StateAt(918))
		if first, second := read(), read(); first != ownWait || second != 0 {
			t.Errorf("a lost write was waited for %v, then %v", first, second)
		}
		r.Wrote("local", fixture.Member(3), fixture.Written.StateAt(919))
		for i := range uint64(2) { // a turn each
			time.Sleep(ownTime + time.Second)
			r.Wrote("local", fixture.Member(4), fixture.Written.StateAt(916+i))
		}
		if took := read(); took != 0 {
			t.Errorf("an old write was waited for %v", took)
		}
		env.Local.Oldest = 900
		calls := env.Origin.Calls.Load()
		r.Wrote("local", fixture.Member(3), fixture.Written.StateAt(10))
		if took := read(); took != 0 || env.Origin.Calls.Load() != calls {
			t.Errorf("a write so long ago that its sum is forgotten: %v, and Redis was asked", took)
		}
		for i := range 3 * maxWrites {
			r.Wrote("local", fmt.Sprint(i), fixture.Written.StateAt(917))
		}
		if n := len(r.own.last.newer) + len(r.own.last.old); n > 2*maxWrites {
			t.Errorf("%d writes are kept", n)
		}
	})
}

// TestNobodyWaitsWithoutOwnWrites: a reader that is told of none has no such source.
func TestNobodyWaitsWithoutOwnWrites(t *testing.T) {
	r := newEnv().reader()
	r.Wrote("local", fixture.Member(3), fixture.Written.StateAt(918))
	if a := of(t.Context(), r, rankcache.Query{Board: "local"}, 0, fixture.Member(3)); a.Source != rankcache.SourceLocal || reflect.TypeOf(r.first) != reflect.TypeFor[*trimmed]() {
		t.Errorf("%v by %T", a.Source, r.first)
	}
}

// TestNextOwnWriteIsKept: a read that finds a write lost forgets that one, not a later one that came meanwhile.
func TestNextOwnWriteIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		env.Origin.Seq.Store(917)
		env.Origin.Hold = make(chan struct{})
		cfg := env.config()
		cfg.OwnWrites = true
		r := readerOf(t, cfg)
		r.Wrote("local", fixture.Member(3), fixture.Written.StateAt(918))
		time.AfterFunc(2*ownWait, func() {
			r.Wrote("local", fixture.Member(3), fixture.Written.StateAt(919))
			close(env.Origin.Hold)
		})
		if a := of(t.Context(), r, rankcache.Query{Board: "local"}, 0, fixture.Member(3)); a.Err != nil {
			t.Error(a.Err)
		}
		if w, _ := r.own.last.get("local", fixture.Member(3)); w.state.Seq != 919 {
			t.Errorf("the write at 919 has become %+v", w)
		}
	})
}
