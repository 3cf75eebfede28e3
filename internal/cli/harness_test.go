package cli

import (
	"os"
	"testing"

	"rankcache/internal/testkit"
)

func TestMain(m *testing.M) {
	if os.Getenv(envHang) != "" {
		hang()
	}
	testkit.Main(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
