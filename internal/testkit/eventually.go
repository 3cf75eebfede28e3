package testkit

import (
	"testing"
	"time"
)

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
