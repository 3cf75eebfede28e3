package hotkey

import (
	"cmp"
	"slices"
	"time"

	"rankcache"
)

// Cause is the reason why a board is hot.
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

const evictMargin = 1.5 // how much hotter than the coldest board a candidate must be: equal ones would evict each other

// A promotion within flapWindow of the board's demotion is a flip, unless more than maxRemembered boards are known.
const (
	flapWindow    = 5 * time.Minute
	maxRemembered = 5000
)

// policy is a state machine that decides which boards are promoted. Its state
// depends on the inputs of step alone, one call a second: no clock, no I/O, no lock.
//
// A board is promoted by its own rate, by the verdict or by the operator. Only its own rate, the operator or the cap
// demotes it: reads of a promoted board no longer reach Redis, so a server-side source stops listing it.
type policy struct {
	cfg        Config
	exit       float64 // rate below which boards are cold that own requests promoted
	listedExit float64 // of boards that the verdict has listed
	boards     map[rankcache.BoardID]*candidate
}

func newPolicy(cfg Config) *policy {
	exit := min(maxExitRate, cfg.PromoteRate/2)
	return &policy{cfg: cfg, exit: exit, listedExit: min(listedExitRate, exit), boards: make(map[rankcache.BoardID]*candidate)}
}

type observation struct {
	rate   func(rankcache.BoardID) float64 // own requests/s of the last second
	busy   []BoardCount                    // boards that may have reached the promote rate
	listed map[rankcache.BoardID]int64     // counts of a verdict that is not too old
	pinned []rankcache.BoardID
	barred func(rankcache.BoardID) bool // boards that must not be promoted
}

// transition is one promotion, with a cause, or demotion, with a reason.
type transition struct {
	board  rankcache.BoardID
	cause  Cause  // of a promotion
	reason string // of a demotion
	flip   bool   // promoted again shortly after its demotion
}

// step takes one second's observation and returns the promotions and demotions.
func (p *policy) step(now time.Time, o observation) []transition {
	p.update(now, o)
	transitions := p.demote(now, o)
	transitions = append(transitions, p.promote(now)...)
	p.forget(now)
	return transitions
}

// update sets the inputs of this second in every candidate.
func (p *policy) update(now time.Time, o observation) {
	for _, b := range o.busy {
		p.at(b.Board)
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
			c.wasListed = true
		}
		c.pinned, c.barred = false, o.barred(b)
		c.cooling = !c.hot && now.Before(c.coolUntil)
	}
	for _, b := range o.pinned {
		p.boards[b].pinned = true
	}
	for _, c := range p.boards {
		c.updatePin()
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

// demote demotes the barred boards and those that have been cold for long enough.
func (p *policy) demote(now time.Time, o observation) (transitions []transition) {
	for _, c := range p.boards {
		if !c.hot {
			continue
		}
		switch {
		case c.barred:
			transitions = append(transitions, c.demote(now, p.cfg.CoolDown, reasonBarred))
		case c.coldSince(now, p.exitRate(c)) >= p.cfg.ExitAfter && now.Sub(c.since) >= p.cfg.Residency:
			transitions = append(transitions, c.demote(now, p.cfg.CoolDown, reasonCold))
		}
	}
	return transitions
}

// exitRate is lower for a listed board: this sidecar may get few of its requests, and would promote it again.
func (p *policy) exitRate(c *candidate) float64 {
	if c.wasListed {
		return p.listedExit
	}
	return p.exit
}

// promote promotes the boards that have a cause, the pinned ones first and then the hottest, as far as the cap allows.
func (p *policy) promote(now time.Time) (transitions []transition) {
	var hot, want []*candidate
	for _, c := range p.boards {
		if c.hot {
			hot = append(hot, c)
		} else if c.newCause = p.cause(c); c.newCause != "" {
			want = append(want, c)
		}
	}
	slices.SortFunc(want, func(a, b *candidate) int { return -hotter(a, b) })
	slices.SortFunc(hot, hotter) // coldest first
	n := len(hot)
	for _, c := range want {
		full := n >= p.cfg.MaxBoards
		if full && len(hot) > 0 && c.displaces(hot[0]) {
			transitions = append(transitions, hot[0].demote(now, p.cfg.CoolDown, reasonEvicted))
			hot, n = hot[1:], n-1
		} else if full && !c.pinned {
			break
		}
		transitions = append(transitions, c.promote(now))
		n++
	}
	return transitions
}

func (p *policy) cause(c *candidate) Cause {
	switch {
	case c.barred:
		return ""
	case c.pinned:
		return CausePinned
	case c.cooling:
		return ""
	case c.bursts() >= promoteSeconds:
		return CauseOwn
	case c.inVerdict && c.rates.sum() >= listedReads && c.rates.mean() >= listedRate:
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

// forget removes boards without requests, listing, pin or recent demotion.
func (p *policy) forget(now time.Time) {
	window := flapWindow
	if len(p.boards) > maxRemembered {
		window = p.cfg.CoolDown
	}
	for b, c := range p.boards {
		recent := !c.demotedAt.IsZero() && now.Sub(c.demotedAt) < window
		if !c.hot && !c.inVerdict && !c.pinned && c.burst == 0 && !recent {
			delete(p.boards, b)
		}
	}
}
