package conn

import (
	"sync/atomic"
	"time"
)

// Limits are the time-outs of a connection. Each may come early, by at most a sixth of
// the shortest of them.
type Limits struct {
	Read  time.Duration // one request, from its first byte to its last
	Write time.Duration // one answer, or each part of a long one
	Idle  time.Duration // between two requests
}

// slack is how old a deadline may be and still serve for one set now.
func (l *Limits) slack() time.Duration { return min(l.Read, l.Write, l.Idle) / 9 }

// maxStale is how far the coarse time may be behind.
const maxStale = time.Second / 2

// Clock is a coarse clock that the connections of one server share: reading it costs
// one atomic load.
type Clock struct {
	limits Limits
	began  time.Time
	now    atomic.Int64    // nanoseconds since began
	onTick func(time.Time) // called after each move
}

// NewClock returns a clock that shows the present time. onTick is called by [Clock.Run]
// each time that the clock has moved, at least twice a second.
func NewClock(limits Limits, onTick func(time.Time)) *Clock {
	return &Clock{limits: limits, began: time.Now(), onTick: onTick}
}

// Run moves the clock until stop is closed. Several may do so.
func (c *Clock) Run(stop <-chan struct{}) {
	ticker := time.NewTicker(min(c.limits.slack()/2, maxStale))
	defer ticker.Stop()
	for {
		now := time.Now()
		c.now.Store(int64(now.Sub(c.began)))
		c.onTick(now)
		select {
		case <-ticker.C:
		case <-stop:
			return
		}
	}
}

// due reports whether a deadline set at the coarse time *set is too old; if so, *set
// becomes the present.
func (c *Clock) due(set *int64) bool {
	now := c.now.Load()
	if *set != 0 && now-*set < int64(c.limits.slack()) {
		return false
	}
	*set = max(now, 1)
	return true
}
