// Package tick waits and repeats.
package tick

import (
	"context"
	"math/rand/v2"
	"time"
)

// Every is a loop whose body runs after each d until ctx is done; ticks that a longer body misses are left out.
func Every(ctx context.Context, d time.Duration) func(yield func() bool) {
	return func(yield func() bool) {
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if !yield() {
					return
				}
			}
		}
	}
}

// NowAndEvery is [Every] with a first run at once.
func NowAndEvery(ctx context.Context, d time.Duration) func(yield func() bool) {
	return func(yield func() bool) {
		if yield() {
			Every(ctx, d)(yield)
		}
	}
}

// Sleep returns after d, or false when ctx is done before.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Jitter returns d ± 10 %, so that processes that were started together do not ask together.
func Jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64()))
}
