package sidecar

import (
	"context"
	"testing"

	"rankcache"

	"rankcache/internal/testkit/fixture"
)

// testEnv is everything that a reader reads from.
type testEnv struct {
	*fixture.Env
	limits OriginLimits
}

func newEnv() *testEnv { return &testEnv{Env: fixture.New()} }

func (env *testEnv) config() Config {
	return Config{Tiers: fixture.Tiers(fixture.Rooms), Boards: fixture.Boards[Board]{"local": env.Local, "tiny": env.Tiny},
		Hot: env.Hot, Origin: env.Origin, Profiles: env.Profiles, Limits: env.limits}
}

func (env *testEnv) reader() *Reader {
	r, err := NewReader(env.config(), nil)
	if err != nil {
		panic(err)
	}
	return r
}

func readerOf(t testing.TB, cfg Config) *Reader {
	t.Helper()
	r, err := NewReader(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// top reads the first rows.
func top(ctx context.Context, r *Reader, q rankcache.Query, limit int) rankcache.Answer {
	q.Limit = limit
	return rankcache.One(ctx, r, q)
}

// of reads members; around is how many rows around each.
func of(ctx context.Context, r *Reader, q rankcache.Query, around int, members ...string) rankcache.Answer {
	q.Members, q.Around = members, around
	return rankcache.One(ctx, r, q)
}
