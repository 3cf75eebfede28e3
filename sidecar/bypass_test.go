package sidecar

import (
	"context"
	"errors"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit/fixture"
	"rankcache/rooms"
)

// TestBypassedBoardsAreReadFromRedis asks for everything that a copy answers, before, while
// and after the boards are bypassed.
func TestBypassedBoardsAreReadFromRedis(t *testing.T) {
	env := newEnv()
	tiers := fixture.Tiers(fixture.Rooms)()
	cfg := env.config()
	cfg.Tiers = func() *rooms.Tiers { return tiers }
	r := readerOf(t, cfg)
	for _, c := range []struct {
		bypassed   []rooms.Bypass
		local, hot rankcache.Source
	}{
		{nil, rankcache.SourceLocal, rankcache.SourceHot},
		{[]rooms.Bypass{{Board: "local"}}, rankcache.SourceRedis, rankcache.SourceHot},
		{[]rooms.Bypass{{Board: "hot"}}, rankcache.SourceLocal, rankcache.SourceRedis},
		{[]rooms.Bypass{{All: true}}, rankcache.SourceRedis, rankcache.SourceRedis},
		{nil, rankcache.SourceLocal, rankcache.SourceHot},
	} {
		tiers = tiers.Bypassing(c.bypassed)
		for board, want := range map[rankcache.BoardID]rankcache.Source{"local": c.local, "hot": c.hot} {
			for what, got := range sourcesOf(t, r, board) {
				if got != want {
					t.Errorf("bypassed %v: %s of %s is from %v, want %v", c.bypassed, what, board, got, want)
				}
			}
		}
		if !r.Keeps("local") || r.Keeps("hot") || r.Keeps("filling") {
			t.Errorf("bypassed %v: keeps local %v, hot %v, filling %v", c.bypassed, r.Keeps("local"), r.Keeps("hot"), r.Keeps("filling"))
		}
	}
}

// sourcesOf returns what answers reads of the board that a copy of either kind answers.
func sourcesOf(t *testing.T, r *Reader, board rankcache.BoardID) map[string]rankcache.Source {
	t.Helper()
	ctx, got := context.Background(), map[string]rankcache.Source{}
	source := func(what string, change func(*rankcache.Query)) {
		q := rankcache.Query{Board: board, Limit: 50}
		change(&q)
		switch a := rankcache.One(ctx, r, q); {
		case a.Err == nil:
			got[what] = a.Source
		case errors.Is(a.Err, rankcache.ErrNotKept):
			got[what] = rankcache.SourceRedis
		default:
			t.Fatal(a.Err)
		}
	}
	source("top", func(*rankcache.Query) {})
	source("copies only", func(q *rankcache.Query) { q.CopiesOnly = true })
	source("bounded top", func(q *rankcache.Query) { q.MaxAge = 100 * 365 * 24 * time.Hour })
	if r.Tiers().Mode(board, "") == rooms.ModeSuperHot {
		source("standings", func(q *rankcache.Query) { q.Limit, q.Members = 0, []string{fixture.Member(1)} })
		source("around", func(q *rankcache.Query) { q.Limit, q.Members, q.Around = 0, []string{fixture.Member(1)}, 5 })
	}
	return got
}

func TestABypassedBoardStaysBlocked(t *testing.T) {
	cfg := newEnv().config()
	tiers := cfg.Tiers().Bypassing([]rooms.Bypass{{All: true}})
	cfg.Tiers = func() *rooms.Tiers { return tiers }
	if got := readerOf(t, cfg).Tier("shut", ""); got != TierBlocked {
		t.Errorf("tier %v", got)
	}
}
