// Package tick waits and repeats. It is no public API.
package tick

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"
)

// Every yields the time after each d until ctx is done. Where the loop's body takes longer, the ticks
// that it misses are left out.
func Every(ctx context.Context, d time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				if !yield(now) {
					return
				}
			}
		}
	}
}

// NowAndEvery yields the time at once, and then as [Every] does.
func NowAndEvery(ctx context.Context, d time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		if yield(time.Now()) {
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
