package hotkey

import (
	"math/bits"
	"time"

	"rankcache"
)

const (
	// burstSeconds are looked back on for the promote rate.
	burstSeconds = 3
	burstMask    = 1<<burstSeconds - 1
	// rateSeconds are averaged for every other decision: a room asked for once
	// a second on average has many seconds with no request or three.
	rateSeconds = 10
	// listedSeconds of rates are wanted before a listed board is promoted.
	listedSeconds = 5
)

// candidate is a board that is promoted, or was lately, or may be soon.
type candidate struct {
	board rankcache.BoardID
	rates rateRing
	burst uint8 // one bit per second, newest lowest: the promote rate was reached

	// As of this step.
	pinned, barred, cooling, inVerdict bool
	count                              int64 // what the verdict counted
	wants                              Cause

	hot        bool
	cause      Cause     // of the promotion
	since      time.Time // of the promotion, or of the demotion
	below      time.Time // since when the rate is below the exit rate; zero: it is not
	listedOnce bool      // the verdict has listed it since its promotion
	leftAt     time.Time // when it was last demoted
	coolUntil  time.Time
}

// bursts returns in how many of the last seconds the promote rate was reached.
func (c *candidate) bursts() int { return bits.OnesCount8(c.burst) }

// coldSince returns for how long the board has been below the exit rate. A
// pinned board is never cold.
func (c *candidate) coldSince(now time.Time, exit float64) time.Duration {
	if c.pinned || c.rates.mean() >= exit {
		c.below = time.Time{}
		return -1
	}
	if c.below.IsZero() {
		c.below = now
	}
	return now.Sub(c.below)
}

// displaces reports whether the board may take the other's place under the cap:
// pinned boards take anybody's, others must be enough hotter.
func (c *candidate) displaces(other *candidate) bool {
	return !other.pinned && (c.pinned || c.rates.mean() > evictMargin*other.rates.mean())
}

// followPin keeps the cause of a hot board true when the operator changes his
// mind: one that is pinned no longer has to earn its place from now on.
func (c *candidate) followPin() {
	switch {
	case c.hot && c.pinned:
		c.cause = CausePinned
	case c.hot && c.cause == CausePinned:
		c.cause = CauseOwn
	}
}

// enter promotes the board for the cause that it wants to be.
func (c *candidate) enter(now time.Time) change {
	flip := !c.leftAt.IsZero() && now.Sub(c.leftAt) < flapWindow
	c.hot, c.cause, c.since, c.below = true, c.wants, now, time.Time{}
	c.listedOnce = c.inVerdict
	return change{board: c.board, cause: c.cause, flip: flip}
}

// rateRing keeps the rates of the last seconds.
type rateRing struct {
	rates [rateSeconds]float64
	n     int // seconds seen, up to rateSeconds
	next  int
}

func (r *rateRing) add(rate float64) {
	r.rates[r.next] = rate
	r.next = (r.next + 1) % rateSeconds
	r.n = min(r.n+1, rateSeconds)
}

// mean returns the average of the seconds seen, 0 when there are none.
func (r *rateRing) mean() float64 {
	var sum float64
	for _, rate := range r.rates[:r.n] {
		sum += rate
	}
	return sum / float64(max(r.n, 1))
}
