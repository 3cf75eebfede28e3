package httpapi

import (
	"log/slog"
	"testing"

	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
	"rankcache/sidecar"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// testEnv is everything that a server reads from.
type testEnv struct {
	*fixture.Env
	log *slog.Logger // nil: a warning fails the test
}

func newEnv() *testEnv { return &testEnv{Env: fixture.New()} }

func (env *testEnv) config() sidecar.Config {
	return sidecar.Config{Tiers: fixture.Tiers(fixture.Rooms), Boards: fixture.Boards[sidecar.Board]{"local": env.Local, "tiny": env.Tiny},
		Hot: env.Hot, Origin: env.Origin, Profiles: env.Profiles}
}

func (env *testEnv) reader() *sidecar.Reader {
	r, err := sidecar.NewReader(env.config(), nil)
	if err != nil {
		panic(err)
	}
	return r
}

func readerOf(t testing.TB, cfg sidecar.Config) *sidecar.Reader {
	t.Helper()
	r, err := sidecar.NewReader(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
