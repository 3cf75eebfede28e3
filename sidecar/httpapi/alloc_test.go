package httpapi

import (
	"context"
	"log/slog"
	"testing"

	"rankcache"
	"rankcache/sidecar"
	"rankcache/sidecar/internal/fixture"
)

// TestNoAllocations: what a kept page or a local standing costs the collector.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool drop what it is given")
	}
	env := newEnv()
	cfg := env.config()
	cfg.Hot = quietHot{env.Hot}
	cfg.Boards = fixture.Boards[sidecar.Board]{"local": bigBoard(t, "local", 20_000)}
	r := readerOf(t, cfg)
	s, err := New(r, Config{}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/v1/boards/local/top", "/v1/boards/local/top?limit=10", "/v1/boards/local/top?profiles=1",
		"/v1/boards/local/top?me=1000900", "/v1/boards/%6cocal/top?room=88", "/v1/boards/hot/top",
		"/v1/boards/local/members/1000900",
	} {
		ctx := requestCtx(path)
		n := testing.AllocsPerRun(200, func() {
			ctx.Response.Reset()
			s.checkHost(ctx)
		})
		if n != 0 || ctx.Response.StatusCode() != 200 {
			t.Errorf("%s: %v allocations, status %d", path, n, ctx.Response.StatusCode())
		}
	}
	q, dst, members := sidecar.Query{Board: "local"}, make([]rankcache.Standing, 0, 1), []string{"1000900"}
	if n := testing.AllocsPerRun(200, func() { _, _ = r.Top(context.Background(), q, 50) }); n != 0 {
		t.Errorf("Reader.Top: %v allocations", n)
	}
	if n := testing.AllocsPerRun(200, func() { _, _ = r.Standings(context.Background(), q, dst, members) }); n != 0 {
		t.Errorf("Reader.Standings: %v allocations", n)
	}
}

// quietHot is a hot tier whose counting allocates nothing.
type quietHot struct{ *fixture.Hot }

func (quietHot) Count(rankcache.BoardID) {}
