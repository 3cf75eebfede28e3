package conn

import (
	"sync"
	"sync/atomic"
	"time"
)

// Limits are the time-outs of a connection. Each may come early, by at most a sixth of the shortest of them.
type Limits struct {
	Read  time.Duration // one request, from its first byte to its last
	Write time.Duration // one answer, or each part of a long one
	Idle  time.Duration // between two requests
}

// slack is how old a deadline may be and still serve for one set now.
func (l *Limits) slack() time.Duration { return min(l.Read, l.Write, l.Idle) / 9 }

const maxStale = time.Second / 2 // how far the coarse time may be behind

// Clock is a coarse clock that the connections of one server share: reading it costs one atomic load.
type Clock struct {
	limits Limits
	began  time.Time
	now    atomic.Int64    // nanoseconds since began
	mu     sync.Mutex      // held by each move, so that none goes back
	onTick func(time.Time) // called in each move
}

// NewClock returns a clock. Its [Clock.Run] calls onTick when it moves, at least twice a second, not concurrently.
func NewClock(limits Limits, onTick func(time.Time)) *Clock {
	return &Clock{limits: limits, began: time.Now(), onTick: onTick}
}

// Run moves the clock until stop is closed, also when each second begins. Several may do so.
func (c *Clock) Run(stop <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			now := c.move()
			timer.Reset(min(c.limits.slack()/2, maxStale, untilSecond(now)))
		case <-stop:
			return
		}
	}
}

func (c *Clock) move() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.now.Store(int64(now.Sub(c.began)))
	c.onTick(now)
	return now
}

// untilSecond returns how long it is until the next second begins.
func untilSecond(now time.Time) time.Duration { return time.Second - time.Duration(now.Nanosecond()) }

// due reports whether a deadline set at the coarse time *set is too old; if so, *set becomes the present.
func (c *Clock) due(set *int64) bool {
	now := c.now.Load()
	if *set != 0 && now-*set < int64(c.limits.slack()) {
		return false
	}
	*set = max(now, 1)
	return true
}
