package kafka

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// An end that hangs is left, one that only takes its time is waited for.
func TestInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		if err := inTime(func() error { time.Sleep(closeTime / 2); return failed }); !errors.Is(err, failed) {
			t.Error(err)
		}
		hangs, began := make(chan struct{}), time.Now()
		defer close(hangs)
		if err := inTime(func() error { <-hangs; return nil }); !errors.Is(err, ErrNotClosed) || time.Since(began) != closeTime {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
