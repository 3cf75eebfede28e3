package rooms

import (
	"errors"
	"fmt"
	"time"

	"rankcache"
	"rankcache/class"
)

// Names of periods, beside times and tags.
const (
	Now      = "now"
	Previous = "previous"
)

// PeriodState is how far the life of a period's boards has come by the clock.
type PeriodState uint8

// The states of a period, in their order.
const (
	PeriodUpcoming PeriodState = iota
	PeriodRunning
	PeriodEnded
	PeriodOver // and its grace
	PeriodGone // ended longer ago than its boards are kept
)

// String returns the state as answers have it.
func (s PeriodState) String() string {
	return [...]string{"upcoming", "running", "ended", "ended", "gone"}[s]
}

// Locked is the life as answers have it: closing at least, once period and grace are over. Only Redis tells more.
func (s PeriodState) Locked(life rankcache.Life) rankcache.Life {
	if s >= PeriodOver {
		return max(life, rankcache.LifeClosing)
	}
	return life
}

// NamedPeriod is the period that a request names, with its state.
type NamedPeriod struct {
	class.Period // zero: the class has no periods
	State        PeriodState
	// From one instant until before another the name stands for this period in this state. A zero Until is never.
	From, Until time.Time
}

// Holds reports whether the name stands for the same period at another time, in the same state.
func (p *NamedPeriod) Holds(now time.Time) bool {
	return !now.Before(p.From) && (p.Until.IsZero() || now.Before(p.Until))
}

// PeriodAt returns the period that at names: now, previous, a time as in RFC 3339, or a tag. An
// error tells what is wrong with at; it is a [*class.Gap] where it names no season.
func (c *Class) PeriodAt(at string, now time.Time) (NamedPeriod, error) {
	calendar := c.Calendar()
	if !calendar.Periodic() {
		if at != Now {
			return NamedPeriod{}, errors.New("the class has no periods: leave it out")
		}
		return NamedPeriod{State: PeriodRunning}, nil
	}
	switch at {
	case Now:
		p, err := calendar.At(now)
		return c.InState(p, now), err
	case Previous:
		p, err := calendar.Ended(now)
		next, none := calendar.Next(p)
		if none != nil {
			return c.InState(p, now), err
		}
		return c.inState(p, now, next.End), err
	}
	p, err := parsePeriod(calendar, at)
	return c.InState(p, now), err
}

func parsePeriod(calendar class.Calendar, at string) (class.Period, error) {
	if t, err := time.Parse(time.RFC3339, at); err == nil {
		return calendar.At(t)
	}
	p, err := calendar.Parse(at)
	if err != nil {
		return p, fmt.Errorf("is %.40q: want now, previous, a time as in RFC 3339 (+ is %%2B) or a tag of the class", at)
	}
	return p, nil
}

// InState returns a period of the class with its state.
func (c *Class) InState(p class.Period, now time.Time) NamedPeriod { return c.inState(p, now) }

// inState is InState of a name that stands for another period at further instants.
func (c *Class) inState(p class.Period, now time.Time, further ...time.Time) NamedPeriod {
	named := NamedPeriod{Period: p}
	states := [...]time.Time{p.Start, p.End, p.End.Add(c.Grace), p.End.Add(c.Keep)}
	for _, instant := range states {
		if !now.Before(instant) {
			named.State++
		}
	}
	for _, instant := range append(further, states[:]...) {
		switch {
		case now.Before(instant) && (named.Until.IsZero() || instant.Before(named.Until)):
			named.Until = instant
		case !now.Before(instant) && named.From.Before(instant):
			named.From = instant
		}
	}
	return named
}

// Gone returns the error for a period whose boards are not kept any more.
func (c *Class) Gone(p class.Period) error {
	return fmt.Errorf("the period %s ended on %s, boards are kept for %v", p.Tag, p.End.Format(time.RFC3339), c.Keep)
}
