package testkit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"rankcache/internal/lab/servers"
	"sync"
	"sync/atomic"
	"testing"
)

// mainRuns tells that Main is there to end the shared servers.
var mainRuns atomic.Bool

// Main runs the tests of a binary, ends the servers that they shared and what else they started once for all, and
// exits. Call it from TestMain.
func Main(m *testing.M, ends ...func() error) {
	mainRuns.Store(true)
	code := m.Run()
	for _, s := range []*sharedServer{&sharedRedis, &sharedRedisCluster, &sharedKafka, sharedSQL["postgres"], sharedSQL["mysql"]} {
		ends = append(ends, s.close)
	}
	for _, end := range ends {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, "testkit: end what tests shared:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// The environment variables that steer the tests.
const (
	EnvRedis = "RANKCACHE_TEST_REDIS" // host:port of a running redis-server
	EnvKafka = "RANKCACHE_TEST_KAFKA" // host:port of a running broker

	EnvRedisCluster = "RANKCACHE_TEST_REDIS_CLUSTER" // host:port,… of the nodes of a running Redis Cluster

	EnvPostgres = "RANKCACHE_TEST_POSTGRES" // host:port of a running PostgreSQL that trusts the user rankcache
	EnvMariaDB  = "RANKCACHE_TEST_MARIADB"  // host:port of a running MariaDB whose root has no password

	EnvRequireReal = "RANKCACHE_REQUIRE_REAL" // "1": a missing server is a failure
)

// RequireReal reports whether a missing server is a failure (RANKCACHE_REQUIRE_REAL=1).
func RequireReal() bool { return os.Getenv(EnvRequireReal) == "1" }

// announced has the messages that this binary has printed on standard error, so that it prints each once.
var announced sync.Map

// orSkip skips t, and prints that on standard error, when a server is not installed. Any other error, or
// RANKCACHE_REQUIRE_REAL=1, fails it.
func orSkip(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	checkMissing(t, err)
	announce("TESTS ARE SKIPPED: " + err.Error())
	t.Skip(err)
}

// Need skips t for err as for a server that is not installed.
func Need(t testing.TB, err error) {
	t.Helper()
	orSkip(t, err)
}

// checkMissing fails t unless err reports that a server is not installed and the tests may do without.
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
	if _, printed := announced.LoadOrStore(msg, true); !printed {
		fmt.Fprintf(os.Stderr, "\n*** %s\n*** Set %s=1 to make this a failure.\n\n", msg, EnvRequireReal)
	}
}

// Chromium returns the path of the browser. It skips where none is installed, and prints that.
func Chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	orSkip(t, fmt.Errorf("chromium: %w: install it (Debian's package chromium) or put it in PATH", servers.ErrNotInstalled))
	return ""
}

// PythonClient returns the path of a Python that has the modules openapi_python_client and what a client that it
// generates imports. It skips where scripts/setup.sh has not made it, and prints that.
func PythonClient(t testing.TB) string {
	t.Helper()
	root, err := servers.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(root, ".cache", "python-client", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		orSkip(t, fmt.Errorf("the generator of Python clients: %w: run scripts/setup.sh python-client (%v)", servers.ErrNotInstalled, err))
	}
	return python
}

// Fetched returns the file that "scripts/setup.sh clients" fetches and that matches the pattern, below its folder.
func Fetched(t testing.TB, pattern string) string {
	t.Helper()
	root, err := servers.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(filepath.Join(root, ".cache", "clients", pattern))
	if len(found) == 0 {
		orSkip(t, fmt.Errorf("%s: %w: run scripts/setup.sh clients", pattern, servers.ErrNotInstalled))
	}
	return found[0]
}
