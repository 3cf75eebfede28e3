package serve

import (
	"testing"

	"rankcache/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
