// Package redisclock tells the time of Redis, by which all writers and controllers judge whether a period has begun or
// ended: by clocks of their own they would judge one command differently. Where this machine's clock and Redis's
// differ, one of them is wrong, and nobody knows which; then nothing is to be judged.
package redisclock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/tick"
)

const (
	Good    = 10 * time.Second // how long a comparison holds
	every   = Good / 2         // the time between two, so that hardly any caller has to wait for one
	maxTrip = time.Second      // the longest round trip of a comparison: its half is the error
	maxStep = time.Second      // how far a clock may be set between two, or stand still with its machine
)

// Wrong is the error that the two clocks differ.
type Wrong struct {
	Ahead time.Duration // of this machine's; negative: it is behind
}

func (w *Wrong) Error() string {
	way := "ahead of"
	if w.Ahead < 0 {
		way = "behind"
	}
	return fmt.Sprintf("the clock of this machine is %v %s that of Redis: set right the one that is wrong", w.Ahead.Abs().Round(time.Millisecond), way)
}

// Clock is the clock of a Redis server, in a cluster of any master. All methods may be called concurrently.
type Clock struct {
	Local func() time.Time // time.Now, except in tests
	ask   func(context.Context) (time.Time, error)
	last  atomic.Pointer[comparison] // nil before the first
}

type comparison struct {
	local, redis time.Time // the first has the monotonic clock, too
	fuzz         time.Duration
}

// New returns the clock of a server. It asks nothing yet.
func New(client redis.UniversalClient) *Clock {
	return &Clock{Local: time.Now, ask: func(ctx context.Context) (time.Time, error) { return client.Time(ctx).Result() }}
}

func (c *Clock) Now() time.Time { return c.At(c.Local()) }

// At returns Redis's time at a time of this machine, by the last comparison; before the first both are the same.
func (c *Clock) At(local time.Time) time.Time {
	last := c.last.Load()
	if last == nil {
		return local
	}
	return last.redis.Add(local.Sub(last.local))
}

// Compare returns once the last comparison is within that age. The error: Redis did not tell its time soon enough.
func (c *Clock) Compare(ctx context.Context, within time.Duration) error {
	begun := c.Local()
	if last := c.last.Load(); last != nil && last.holds(begun, within) {
		return nil
	}
	at, err := c.ask(ctx)
	if err != nil {
		return fmt.Errorf("the time of Redis: %w", err)
	}
	trip := c.Local().Sub(begun)
	if trip > maxTrip {
		return errors.New("the time of Redis: the answer took " + trip.Round(time.Millisecond).String())
	}
	c.last.Store(&comparison{begun.Add(trip / 2), at, trip / 2})
	return nil
}

// holds reports whether the comparison is not too old, and this machine's clock was not set since.
func (l *comparison) holds(now time.Time, within time.Duration) bool {
	passed := now.Sub(l.local)
	stepped := now.Round(0).Sub(l.local.Round(0)) - passed
	return passed >= 0 && passed < within && stepped.Abs() < maxStep
}

// Check returns a [*Wrong] if by the last comparison the clocks differ by more than that.
func (c *Clock) Check(most time.Duration) error {
	last := c.last.Load()
	if last == nil {
		return nil
	}
	if ahead := last.local.Round(0).Sub(last.redis); ahead.Abs()-last.fuzz > most {
		return &Wrong{ahead}
	}
	return nil
}

// Agrees returns nil if by a comparison that is not older than within the clocks differ by at most that.
func (c *Clock) Agrees(ctx context.Context, within, most time.Duration) error {
	if err := c.Compare(ctx, within); err != nil {
		return err
	}
	return c.Check(most)
}

// Run compares the clocks again and again until ctx is done.
func (c *Clock) Run(ctx context.Context) {
	for range tick.NowAndEvery(ctx, every) {
		_ = c.Compare(ctx, every/2) // whoever needs it compares again, and has the error
	}
}
