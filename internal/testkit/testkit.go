package testkit

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"rankcache/internal/lab/servers"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// mainRuns tells that Main is there to end the shared servers.
var mainRuns atomic.Bool

// Main runs the tests of a binary, ends the servers that they shared and what else they started once for all, and exits. Call it from TestMain.
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
	EnvFull        = "RANKCACHE_FULL"         // "1": full-size tests
)

// Full reports whether tests shall run in full size (RANKCACHE_FULL=1), as CI does, rather than in the smaller size for development.
func Full() bool { return os.Getenv(EnvFull) == "1" }

// FullOnly skips a test that only tests in full size have, and tells why among the skipped ones.
func FullOnly(t testing.TB, why string) {
	t.Helper()
	if !Full() {
		t.Skipf("only in full size (%s=1, as in .ci/run): %s", EnvFull, why)
	}
}

// Sized returns quick, or full for tests in full size.
func Sized[T any](quick, full T) T {
	if Full() {
		return full
	}
	return quick
}

// RequireReal reports whether a missing server is a failure (RANKCACHE_REQUIRE_REAL=1).
func RequireReal() bool { return os.Getenv(EnvRequireReal) == "1" }

// The pause between two looks grows from the first to the last: a condition that is nearly true is seen at once, and a slow one costs little.
const firstPause, lastPause = time.Millisecond, 50 * time.Millisecond

// Eventually calls cond until it returns nil, and fails the test with its last error when it has not after the time-out. Call it from the test's goroutine.
func Eventually(t testing.TB, timeout time.Duration, cond func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := cond()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not so within %v: %v", timeout, err)
		}
		time.Sleep(pause)
	}
}

// maxNameHead leaves room for prefixes: a board may have 200 characters, a topic 249.
const maxNameHead = 60

// Name returns a new name made of the test's and eight random characters. It is legal as a board, a topic, a group and a Redis key.
func Name(t testing.TB) string {
	head := strings.Map(legal, t.Name())
	return head[:min(len(head), maxNameHead)] + "-" + strings.ToLower(rand.Text()[:8])
}

// legal keeps the characters that boards and topics share.
func legal(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
		return r
	}
	return '-'
}

// announced has the messages that this binary has printed on standard error, so that it prints each once.
var announced sync.Map

// orSkip skips t, and prints that on standard error, when a server is not installed. Any other error, or RANKCACHE_REQUIRE_REAL=1, fails it.
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

// NoLeaks fails the test when goroutines that were started after this call are still there once everything else is cleaned up, so call it first. The test
// must not be parallel to others, whose goroutines can't be distinguished from its own.
func NoLeaks(t testing.TB) {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	server := goleak.IgnoreAnyFunction("rankcache/internal/lab/servers.(*process).run") // of a shared server that this test was the first to ask for
	t.Cleanup(func() { goleak.VerifyNone(t, ignore, server) })
}

// Listen listens on a free port of loopback ("tcp") or on a socket in the test's folder ("unix"). The caller closes it.
func Listen(t testing.TB, network string) net.Listener {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "s")
	}
	ln, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	return ln
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

// PythonClient returns the path of a Python that has the modules openapi_python_client and what a client that it generates imports. It skips where
// scripts/setup.sh has not made it, and prints that.
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
