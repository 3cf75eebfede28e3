package hotkey

import (
	"cmp"
	"slices"
	"time"

	"rankcache"
)

// Cause says why a board is hot.
type Cause string

// Causes of a promotion.
const (
	CauseOwn     Cause = "own-rate" // this sidecar's own requests
	CauseVerdict Cause = "verdict"  // the fleet's verdict
	CausePinned  Cause = "pinned"   // the operator
)

// Reasons of a demotion.
const (
	reasonCold    = "cold"    // below its exit rate for long enough
	reasonEvicted = "evicted" // the cap, and a hotter board
	reasonBarred  = "barred"  // blocked, or its super-hot copy has opened
)

// evictMargin is how much hotter than the coldest board a candidate must be to
// take its place: equals would take turns.
const evictMargin = 1.5

// A promotion counts as a flip this soon after the board's demotion, as long as
// so many boards are remembered at most.
const (
	flapWindow    = 5 * time.Minute
	maxRemembered = 5000
)

// policy decides which boards are promoted. It is a pure function of what step
// is given, one call a second: no clock, no I/O, no lock.
//
// A board comes in by its own rate, by the verdict or by the operator. Only its
// own rate (or the operator, or the cap) takes it out: reads of a promoted board
// no longer reach Redis, so a server-side source stops listing it.
type policy struct {
	cfg    Config
	boards map[rankcache.BoardID]*candidate
}

func newPolicy(cfg Config) *policy {
	return &policy{cfg: cfg, boards: make(map[rankcache.BoardID]*candidate)}
}

// observation is what is known at one step.
type observation struct {
	rate   func(rankcache.BoardID) float64 // own requests/s of the last second
	busy   []rankcache.BoardID             // boards that may have reached the promote rate
	listed map[rankcache.BoardID]int64     // a verdict that still counts
	pinned []rankcache.BoardID
	barred func(rankcache.BoardID) bool // boards that must not be promoted
}

// change is one promotion (Cause) or demotion (Reason).
type change struct {
	board  rankcache.BoardID
	cause  Cause  // of a promotion
	reason string // of a demotion
	flip   bool   // promoted again shortly after its demotion
}

// step takes one second's observation and returns what changes.
func (p *policy) step(now time.Time, o observation) []change {
	p.watch(now, o)
	changes := p.demote(now, o)
	changes = append(changes, p.promote(now)...)
	p.forget(now)
	return changes
}

// watch brings every board that matters up to date.
func (p *policy) watch(now time.Time, o observation) {
	for _, b := range o.busy {
		p.at(b)
	}
	for b := range o.listed {
		p.at(b)
	}
	for _, b := range o.pinned {
		p.at(b)
	}
	for b, c := range p.boards {
		rate := o.rate(b)
		c.rates.add(rate)
		c.burst = (c.burst << 1) & burstMask
		if rate >= p.cfg.PromoteRate {
			c.burst |= 1
		}
		c.count, c.inVerdict = o.listed[b], false
		if _, c.inVerdict = o.listed[b]; c.inVerdict {
			c.listedOnce = true
		}
		c.pinned, c.barred = false, o.barred(b)
		c.cooling = !c.hot && now.Before(c.coolUntil)
	}
	for _, b := range o.pinned {
		p.boards[b].pinned = true
	}
	for _, c := range p.boards {
		c.followPin()
	}
}

func (p *policy) at(b rankcache.BoardID) *candidate {
	c := p.boards[b]
	if c == nil {
		c = &candidate{board: b}
		p.boards[b] = c
	}
	return c
}

// demote takes out the boards that must go and those that have been cold for
// long enough.
func (p *policy) demote(now time.Time, o observation) (changes []change) {
	for _, c := range p.boards {
		if !c.hot {
			continue
		}
		switch {
		case c.barred:
			changes = append(changes, p.leave(now, c, reasonBarred))
		case c.coldSince(now, p.exitRate(c)) >= p.cfg.ExitAfter && now.Sub(c.since) >= p.cfg.Residency:
			changes = append(changes, p.leave(now, c, reasonCold))
		}
	}
	return changes
}

// exitRate is lower for a board that the fleet finds hot: here it may be asked
// for rarely, and would be listed and promoted again at once.
func (p *policy) exitRate(c *candidate) float64 {
	if c.listedOnce {
		return min(p.cfg.ListedExitRate, p.cfg.ExitRate)
	}
	return p.cfg.ExitRate
}

func (p *policy) leave(now time.Time, c *candidate, reason string) change {
	c.hot, c.listedOnce = false, false
	c.cause, c.since, c.leftAt = "", now, now
	c.coolUntil = now.Add(p.cfg.CoolDown)
	c.cooling = true
	return change{board: c.board, reason: reason}
}

// promote takes in the boards that deserve it, the pinned ones first and then
// the hottest, as far as the cap allows.
func (p *policy) promote(now time.Time) (changes []change) {
	var hot, want []*candidate
	for _, c := range p.boards {
		if c.hot {
			hot = append(hot, c)
		} else if c.wants = p.cause(c); c.wants != "" {
			want = append(want, c)
		}
	}
	slices.SortFunc(want, func(a, b *candidate) int { return -hotter(a, b) })
	slices.SortFunc(hot, hotter) // coldest first
	n := len(hot)
	for _, c := range want {
		full := n >= p.cfg.MaxBoards
		if full && len(hot) > 0 && c.displaces(hot[0]) {
			changes = append(changes, p.leave(now, hot[0], reasonEvicted))
			hot, n = hot[1:], n-1
		} else if full && !c.pinned {
			break
		}
		changes = append(changes, c.enter(now))
		n++
	}
	return changes
}

// cause returns why the board should be promoted, "" if it should not.
func (p *policy) cause(c *candidate) Cause {
	switch {
	case c.barred:
		return ""
	case c.pinned:
		return CausePinned
	case c.cooling:
		return ""
	case c.bursts() >= p.cfg.PromoteSeconds:
		return CauseOwn
	case c.inVerdict && c.rates.n >= listedSeconds && c.rates.mean() >= p.cfg.ListedRate:
		return CauseVerdict
	}
	return ""
}

// hotter orders pinned boards above others, then by rate, then by name.
func hotter(a, b *candidate) int {
	if a.pinned != b.pinned {
		if a.pinned {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(a.rates.mean(), b.rates.mean()), cmp.Compare(b.board, a.board))
}

// forget drops what nobody asks about any more.
func (p *policy) forget(now time.Time) {
	window := flapWindow
	if len(p.boards) > maxRemembered {
		window = p.cfg.CoolDown
	}
	for b, c := range p.boards {
		recent := !c.leftAt.IsZero() && now.Sub(c.leftAt) < window
		if !c.hot && !c.inVerdict && !c.pinned && c.burst == 0 && !recent {
			delete(p.boards, b)
		}
	}
}
