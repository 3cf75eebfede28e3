package replay

import (
	"context"
	"math"
	"time"
)

// logEvery is the shortest time between two log lines of one kind.
const logEvery = time.Second

// signal wakes the one goroutine that waits for it. Wake-ups sent before it looks count as one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

// wake never blocks. It may be called by any goroutine, with or without locks.
func (s signal) wake() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// never is a time to wait that takes no timer.
const never time.Duration = math.MaxInt64

// wait returns after d, at a wake-up or at the end of ctx. woken tells of a wake-up.
func (s signal) wait(ctx context.Context, d time.Duration) (woken bool) {
	woken, _ = s.waitOr(ctx, nil, d)
	return woken
}

// waitOr is wait for two signals.
func (s signal) waitOr(ctx context.Context, or signal, d time.Duration) (woken, other bool) {
	var due <-chan time.Time
	if d < never {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-s:
		woken = true
	case <-or:
		other = true
	case <-due:
	}
	return woken, other
}
