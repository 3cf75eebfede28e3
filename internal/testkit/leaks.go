package testkit

import (
	"testing"

	"go.uber.org/goleak"
)

// NoLeaks fails the test when goroutines that were started after this call are still there once everything else is cleaned up, so call it first. The test
// must not be parallel to others, whose goroutines can't be told from its own.
func NoLeaks(t testing.TB) {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	server := goleak.IgnoreAnyFunction("rankcache/internal/lab/servers.(*process).run") // of a shared server that this test was the first to ask for
	t.Cleanup(func() { goleak.VerifyNone(t, ignore, server) })
}
