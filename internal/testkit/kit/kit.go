// Package kit is what tests share that takes no server: sizes, names, waiting by polling. A test that needs no more
// imports it instead of testkit, whose servers and fakes are 300 packages to build and to link.
package kit

import (
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// EnvFull is the environment variable that asks for tests in full size ("1").
const EnvFull = "RANKCACHE_FULL"

// Full reports whether tests shall run in full size (RANKCACHE_FULL=1), as CI does, rather than in the smaller size for
// development.
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

// The pause between two looks grows from the first to the last: a condition that is nearly true is seen at once, and a
// slow one costs little.
const firstPause, lastPause = time.Millisecond, 50 * time.Millisecond

// Eventually calls cond until it returns nil, and fails the test with its last error when it has not after the
// time-out. Call it from the test's goroutine.
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

// Name returns a new name made of the test's and eight random characters. It is legal as a board, a topic, a group and
// a Redis key.
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

// NoLeaks fails the test when goroutines that were started after this call are still there once everything else is
// cleaned up, so call it first. The test must not be parallel to others, whose goroutines can't be distinguished from
// its own.
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
