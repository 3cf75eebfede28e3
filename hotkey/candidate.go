package hotkey

import (
	"math/bits"
	"time"

	"rankcache"
)

const (
	burstSeconds = 3 // the window of the promote rate
	burstMask    = 1<<burstSeconds - 1
	rateSeconds  = 10             // averaged: a board with one request a second has many seconds with none or three
	listedReads  = 5 * listedRate // collected before a listed board is promoted, within one to five seconds
)

// candidate is a board that is hot, was hot recently, or may become hot.
type candidate struct {
	board rankcache.BoardID
	rates rateRing
	burst uint8 // one bit per second, newest lowest: the promote rate was reached

	// As of this step.
	pinned, barred, cooling, inVerdict bool
	count                              int64 // of the verdict
	newCause                           Cause // "" if it should not be promoted

	hot        bool
	cause      Cause     // of the promotion
	since      time.Time // of the promotion, or of the demotion
	belowSince time.Time // since when the rate is below the exit rate; zero: it is not
	wasListed  bool      // the verdict has listed it since its promotion
	demotedAt  time.Time // last
	coolUntil  time.Time
}

// bursts returns in how many of the last seconds the promote rate was reached.
func (c *candidate) bursts() int { return bits.OnesCount8(c.burst) }

// coldSince returns for how long the board has been below the exit rate. A pinned board is never cold.
func (c *candidate) coldSince(now time.Time, exit float64) time.Duration {
	if c.pinned || c.rates.mean() >= exit {
		c.belowSince = time.Time{}
		return -1
	}
	if c.belowSince.IsZero() {
		c.belowSince = now
	}
	return now.Sub(c.belowSince)
}

// displaces reports whether the board may evict the other at the cap: pinned, or hotter by evictMargin.
func (c *candidate) displaces(other *candidate) bool {
	return !other.pinned && (c.pinned || c.rates.mean() > evictMargin*other.rates.mean())
}

// updatePin adapts the cause of a hot board when the operator pins or unpins it.
func (c *candidate) updatePin() {
	switch {
	case c.hot && c.pinned:
		c.cause = CausePinned
	case c.hot && c.cause == CausePinned:
		c.cause = CauseOwn
	}
}

func (c *candidate) promote(now time.Time) transition {
	flip := !c.demotedAt.IsZero() && now.Sub(c.demotedAt) < flapWindow
	c.hot, c.cause, c.since, c.belowSince = true, c.newCause, now, time.Time{}
	c.wasListed = c.inVerdict
	return transition{board: c.board, cause: c.cause, flip: flip}
}

// demote ends the promotion and starts the cool-down.
func (c *candidate) demote(now time.Time, coolDown time.Duration, reason string) transition {
	c.hot, c.wasListed = false, false
	c.cause, c.since, c.demotedAt = "", now, now
	c.coolUntil = now.Add(coolDown)
	c.cooling = true
	return transition{board: c.board, reason: reason}
}

// state returns the board's state for operators, "" when it is only remembered.
func (c *candidate) state() State {
	switch {
	case c.hot:
		return StateHot
	case c.barred && (c.burst != 0 || c.inVerdict || c.pinned):
		return StateBarred
	case c.cooling:
		return StateCooling
	case c.burst != 0 || c.inVerdict:
		return StateWatched
	}
	return ""
}

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

func (r *rateRing) mean() float64 { return r.sum() / float64(max(r.n, 1)) }

func (r *rateRing) sum() (sum float64) {
	for _, rate := range r.rates[:r.n] {
		sum += rate
	}
	return sum
}
