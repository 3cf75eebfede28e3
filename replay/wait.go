package replay

import (
	"context"
	"math/rand/v2"
	"time"
)

// logEvery is the shortest time between two log lines of one kind.
const logEvery = time.Second

// signal wakes the one goroutine that waits for it. Wake-ups sent before it looks
// count as one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

// wake never blocks. It may be called by any goroutine, with or without locks.
func (s signal) wake() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// wait returns after d, at a wake-up or at the end of ctx.
func (s signal) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-s:
	case <-timer.C:
	}
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) { signal(nil).wait(ctx, d) }

// jitter returns d, give or take a tenth, so that a fleet of sidecars that was
// started together does not send its requests together.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64()))
}
