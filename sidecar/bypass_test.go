package sidecar

import (
	"context"
	"testing"
	"time"

	"rankcache"
	"rankcache/rooms"
	"rankcache/sidecar/internal/fixture"
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
		local, hot Source
	}{
		{nil, SourceLocal, SourceHot},
		{[]rooms.Bypass{{Board: "local"}}, SourceRedis, SourceHot},
		{[]rooms.Bypass{{Board: "hot"}}, SourceLocal, SourceRedis},
		{[]rooms.Bypass{{All: true}}, SourceRedis, SourceRedis},
		{nil, SourceLocal, SourceHot},
	} {
		tiers = tiers.Bypassing(c.bypassed)
		for board, want := range map[rankcache.BoardID]Source{"local": c.local, "hot": c.hot} {
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
func sourcesOf(t *testing.T, r *Reader, board rankcache.BoardID) map[string]Source {
	t.Helper()
	ctx, got := context.Background(), map[string]Source{}
	q := Query{Board: board}
	page, err := r.Top(ctx, q, 50)
	if err != nil {
		t.Fatal(err)
	}
	got["top"] = page.Source
	kept, err := r.Copy(&q)
	if err != nil {
		t.Fatal(err)
	}
	got["copy"] = kept.Source
	got["peek"] = SourceRedis
	if a, ok := r.Peek(&q, 0, 50); ok {
		got["peek"] = a.Source
	}
	got["peek into"] = SourceRedis
	if a, ok := r.PeekInto(new([]rankcache.Entry), &q, 50); ok {
		got["peek into"] = a.Source
	}
	got["current at"], _ = r.CurrentAt(&q)
	if r.Tiers().Mode(board, "") == rooms.ModeSuperHot {
		rows, err := r.Standings(ctx, q, nil, []string{fixture.Member(1)})
		if err != nil {
			t.Fatal(err)
		}
		got["standings"] = rows.Source
		near, _, err := r.Around(ctx, q, fixture.Member(1), 2)
		if err != nil {
			t.Fatal(err)
		}
		got["around"] = near.Source
		q.MaxAge = 100 * 365 * 24 * time.Hour
		if page, err = r.Top(ctx, q, 50); err != nil {
			t.Fatal(err)
		}
		got["bounded top"] = page.Source
	}
	return got
}

func TestABypassedBoardStaysBlocked(t *testing.T) {
	cfg := newEnv().config()
	tiers := cfg.Tiers().Bypassing([]rooms.Bypass{{All: true}})
	cfg.Tiers = func() *rooms.Tiers { return tiers }
	if got := readerOf(t, cfg).Tier(&Query{Board: "shut"}); got != TierBlocked {
		t.Errorf("tier %v", got)
	}
}
