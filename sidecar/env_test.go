package sidecar

import (
	"testing"

	"rankcache/sidecar/internal/fixture"
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
