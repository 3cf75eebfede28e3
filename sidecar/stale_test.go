package sidecar

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/internal/testkit/fixture"
	"rankcache/rooms"
)

// readNow is a Redis whose answers are of the moment of the call.
type readNow struct{ rankcache.Reader }

func (r readNow) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	r.Reader.Read(ctx, qs, as)
	for i := range as {
		as[i].CurrentAt = time.Now()
	}
}

func staleReader(t *testing.T, env *testEnv) *Reader {
	cfg := env.config()
	cfg.Origin, cfg.SmallStale = readNow{env.Origin}, 10*time.Second
	return readerOf(t, cfg)
}

// While Redis is away a page that was just read is answered with its age, for as long as it may be; what bounds its
// age, and what was not read, is not.
func TestStalePages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		r, read := staleReader(t, env), rankcache.Query{Board: "any", Members: []string{"m000001", "nobody"}}
		fresh := top(t.Context(), r, rankcache.Query{Board: "any"}, 2)
		begin := time.Now()
		if fresh.Err != nil || fresh.CurrentAt.IsZero() {
			t.Fatalf("%+v", fresh)
		}
		env.Origin.FailWith(errAway)
		time.Sleep(9 * time.Second)
		a := top(t.Context(), r, read, 2)
		if a.Err != nil || a.Source != rankcache.SourceRedis || a.CurrentAt.After(begin) || a.Stamp != fresh.Stamp || len(a.Entries) != 2 {
			t.Errorf("got %+v, want %+v", a, fresh)
		}
		if len(a.Own) != 2 || a.Own[0].Err != nil || a.Own[0].Rank == 0 || a.Own[1].Err == nil {
			t.Errorf("members %+v", a.Own)
		}
		for name, q := range map[string]rankcache.Query{"bounded age": {Board: "any", MaxAge: time.Hour}, "bounded seq": {Board: "any", MinSeq: 1}, "bounded state": {Board: "any", MinState: fresh.State},
			"another page": {Board: "any", Start: 1}, "another board": {Board: "other"}, "ranked": {Board: "any", Mode: rankcache.Competition}, "primary": {Board: "any", Primary: true}} {
			if a := top(t.Context(), r, q, 2); a.Err == nil {
				t.Errorf("%s: %+v", name, a)
			}
		}
		time.Sleep(2 * time.Second)
		if a := top(t.Context(), r, read, 2); a.Err == nil {
			t.Errorf("a page of 11 s ago: %+v", a)
		}
		env.Origin.FailWith(fmt.Errorf("WRONGTYPE"))
		if a := top(t.Context(), r, read, 2); a.Err == nil {
			t.Error("Redis refuses, and is answered for")
		}
	})
}

// Without the setting nothing is kept, and there is no such source.
func TestWithoutStalePages(t *testing.T) {
	env := newEnv()
	r := env.reader()
	top(t.Context(), r, rankcache.Query{Board: "any"}, 2)
	env.Origin.FailWith(errAway)
	if a := top(t.Context(), r, rankcache.Query{Board: "any"}, 2); a.Err == nil || r.bounds.next != source(r.flights) {
		t.Errorf("%+v, chain %T", a, r.bounds.next)
	}
}

// The memory is bounded: the pages that were read last stay.
func TestStalePagesAreBounded(t *testing.T) {
	env := newEnv()
	env.Origin.N.Store(500)
	r := staleReader(t, env)
	const boards = 1000 // of some 20 KB each
	for i := range boards {
		top(t.Context(), r, rankcache.Query{Board: rankcache.BoardID(fmt.Sprint("b", i))}, 500)
	}
	s := r.bounds.next.(*stale)
	if n := s.order.Len(); s.bytes > maxStale || n != len(s.pages) || n < 100 || n == boards {
		t.Errorf("%d pages of %d bytes, %d in the map", n, s.bytes, len(s.pages))
	}
	env.Origin.FailWith(errAway)
	if a := top(t.Context(), r, rankcache.Query{Board: "b999"}, 500); a.Err != nil {
		t.Error(a.Err)
	}
	if a := top(t.Context(), r, rankcache.Query{Board: "b0"}, 500); a.Err == nil {
		t.Error("the page read first is still there")
	}
}

// A board that is bypassed has no copies.
func TestStalePagesOfABypassedBoard(t *testing.T) {
	env := newEnv()
	tiers, cfg := fixture.Tiers(fixture.Rooms)(), env.config()
	cfg.Origin, cfg.SmallStale, cfg.Tiers = readNow{env.Origin}, time.Minute, func() *rooms.Tiers { return tiers }
	r := readerOf(t, cfg)
	top(t.Context(), r, rankcache.Query{Board: "any"}, 2)
	env.Origin.FailWith(errAway)
	for _, bypassed := range [][]rooms.Bypass{nil, {{Board: "any"}}, {{All: true}}} {
		tiers = tiers.Bypassing(bypassed)
		if a := top(t.Context(), r, rankcache.Query{Board: "any"}, 2); (a.Err == nil) != (bypassed == nil) {
			t.Errorf("bypassed %v: %+v", bypassed, a)
		}
	}
}
