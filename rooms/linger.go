package rooms

import (
	"errors"
	"fmt"
	"time"

	"rankcache/class"
)

const (
	unset            = -1               // no duration that a file can have
	maxDefaultLinger = 10 * time.Minute // outlives the looks at a result, most of which come within minutes
	maxEnded         = 3                // the most periods that keep the mode of their class within its grace
)

type stage uint8 // how far the life of a period's boards in memory has come. The order is that of their importance.

const (
	stageRunning   stage = iota // or ended within the grace
	stageUpcoming               // begins within the lead
	stageLingering              // its result is looked at
	stages
)

// LingerOf returns how long a period's boards stay in memory: as the file has it, or 10 min, half a period at most.
func (c *Class) LingerOf(p class.Period) time.Duration {
	switch {
	case c.Mode != ModeSuperHot || !c.Calendar().Periodic():
		return 0
	case c.linger != unset:
		return c.linger
	}
	return max(0, min(maxDefaultLinger, p.End.Sub(p.Start)/2, c.Keep-c.Grace))
}

func (c *Class) checkLinger() error {
	switch most := c.Keep - c.Grace; {
	case c.linger == unset:
		return nil
	case !c.Calendar().Periodic():
		return errors.New("linger: a class without periods has no boards that end: leave it out")
	case c.linger > most:
		return fmt.Errorf("linger %v is longer than what is left of keep %v behind grace %v: want at most %v", c.linger, c.Keep, c.Grace, most)
	}
	return nil
}

// periods returns the periods whose boards have the mode of the class, by stage, the latest first.
func (c *Class) periods(now time.Time) (all [stages][]class.Period) {
	calendar := c.Calendar()
	if running, err := calendar.At(now); err == nil {
		all[stageRunning] = []class.Period{running}
	}
	if next, err := calendar.Following(now); err == nil && !now.Before(next.Start.Add(-c.Lead)) {
		all[stageUpcoming] = []class.Period{next}
	}
	ended, err := calendar.Ended(now)
	for n := 0; err == nil; n++ {
		switch over := now.Sub(ended.End) - c.Grace; {
		case over <= 0 && n < maxEnded:
			all[stageRunning] = append(all[stageRunning], ended)
		case over > 0 && over <= c.LingerOf(ended):
			all[stageLingering] = append(all[stageLingering], ended)
		default:
			return all
		}
		ended, err = calendar.Previous(ended)
	}
	return all
}

// Lingering returns how many boards of the class linger at one time at most, or some number above [MaxClassBoards].
func (c *Class) Lingering() int {
	p, err := c.Calendar().Ended(time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC))
	n, last := 0, p.End
	for linger := c.LingerOf(p); err == nil && n <= MaxClassBoards && last.Sub(p.End) < linger; n++ {
		p, err = c.Calendar().Previous(p)
	}
	return c.Boards() * n
}
