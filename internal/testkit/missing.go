package testkit

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"rankcache/internal/lab/servers"
)

// announced keeps what this binary has said on standard error, so that it says it once.
var announced sync.Map

// orSkip skips t, and says so on standard error, when a server is not installed. Any other error, or RANKCACHE_REQUIRE_REAL=1, fails it.
func orSkip(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	checkMissing(t, err)
	announce("TESTS ARE SKIPPED: " + err.Error())
	t.Skip(err)
}

// checkMissing fails t unless err says that a server is not installed and the tests may do without.
func checkMissing(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, servers.ErrNotInstalled) {
		t.Fatal(err)
	}
	if RequireReal() {
		t.Fatalf("%v (%s=1 asks for the real server)", err, EnvRequireReal)
	}
}

func announce(msg string) {
	if _, said := announced.LoadOrStore(msg, true); !said {
		fmt.Fprintf(os.Stderr, "\n*** %s\n*** Set %s=1 to make this a failure.\n\n", msg, EnvRequireReal)
	}
}
