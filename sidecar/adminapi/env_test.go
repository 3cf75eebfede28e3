package adminapi

import (
	"sync"
	"testing"

	"rankcache/internal/testkit/apitest"
	"rankcache/internal/testkit/fixture"
	"rankcache/sidecar"
)

// testEnv is everything that a reader reads from.
type testEnv struct{ *fixture.Env }

func newEnv() testEnv { return testEnv{fixture.New()} }

func (env testEnv) reader() *sidecar.Reader {
	r, err := sidecar.NewReader(sidecar.Config{Tiers: fixture.Tiers(fixture.Rooms),
		Boards: fixture.Boards[sidecar.Board]{"local": env.Local, "tiny": env.Tiny},
		Hot:    env.Hot, Origin: env.Origin, Profiles: env.Profiles}, nil)
	if err != nil {
		panic(err)
	}
	return r
}

// document is loaded once: every exchange of the tests is held against it.
var document = sync.OnceValues(func() (*apitest.Document, error) { return apitest.Load(sidecar.OpenAPI()) })

// inDocument checks one exchange.
func inDocument(t testing.TB, e apitest.Exchange) {
	t.Helper()
	doc, err := document()
	if err != nil {
		t.Fatal("openapi.yaml: ", err)
	}
	if err := doc.Check(e); err != nil {
		t.Errorf("%s %s against openapi.yaml: %v", e.Method, e.Target, err)
	}
}
