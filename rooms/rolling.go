package rooms

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"rankcache/class"
	"rankcache/wire"
)

// Limits of [Rolling.Last].
const minLast, maxLast = 2, 100

// Rolling tells that each board is the sum of another class's boards: of its own period and some before it.
type Rolling struct {
	Of   string // the other class; "": none
	Last int    // how many periods
}

func (r Rolling) String() string {
	if r.Of == "" {
		return ""
	}
	return fmt.Sprintf("of %s, last %d", r.Of, r.Last)
}

// Rolls reports whether the boards of the class are sums of another class's.
func (c *Class) Rolls() bool { return c.Rolling.Of != "" }

func (c *Class) readRolling(n *yaml.Node) error {
	err := fields(n, map[string]func(*yaml.Node) error{"of": intoString(&c.Rolling.Of), "last": integer(&c.Rolling.Last, minLast, maxLast)})
	if err == nil && (c.Rolling.Of == "" || c.Rolling.Last == 0) {
		err = at(n, errors.New("rolling: want both, as in {of: gift-day, last: 7}"))
	}
	return err
}

// finishRolling makes a rolling class: what it has of the other one can't be set beside it.
func (c *Class) finishRolling(text classText, among Classes) error {
	of := among.Class(c.Rolling.Of)
	wrong := func(err error) error { return fmt.Errorf("class %.60q: rolling: %w", text.name, err) }
	switch {
	case text.period != "" || text.tz != "" || text.starts != startsUnset || text.seasons != nil || c.Grace != unset:
		return wrong(fmt.Errorf("period, starts, tz and grace are those of %.60q: leave them out here", c.Rolling.Of))
	case c.Ops != nil:
		return wrong(errors.New("leave ops out: no command changes its boards, but through those of the other class"))
	case of == nil:
		return wrong(fmt.Errorf("%.60q is no class, or rolling itself", c.Rolling.Of))
	case !of.Calendar().Periodic():
		return wrong(fmt.Errorf("%s has no periods", of.Name()))
	case of.Calendar().Seasons() != nil:
		return wrong(fmt.Errorf("%s has seasons: want periods of one length", of.Name()))
	}
	c.Grace, c.Ops = of.Grace, []wire.Op{}
	if c.Orders == unset {
		c.Orders = of.Orders
	}
	return c.finishWith(text, of.Calendar())
}

func (c *Class) checkRolling() error {
	switch {
	case !c.Rolls():
		return nil
	case c.Ties != TiesMember:
		return fmt.Errorf("rolling: ties: %s: the sums of ended periods come in no order of arrival: leave ties out", c.Ties)
	case c.Form.Lowest():
		return errors.New("rolling: order: asc: sums grow: leave order out")
	case c.Trim > 0:
		return errors.New("rolling: trim: a member that is trimmed now may lead when a period leaves: leave trim out")
	case c.Guard != Guard{}:
		return errors.New("rolling: guard: that of the other class decides: leave guard out")
	case c.Data:
		return errors.New("rolling: data: sums of several periods have none: leave data out")
	case len(c.Feeds) > 0:
		return errors.New("rolling: feeds: what a period adds leaves it again: leave feeds out")
	}
	return nil
}

// checkSources checks that a rolling class can be the sum of the other one's boards.
func (all Classes) checkSources(c *Class) error {
	of := all.Class(c.Rolling.Of)
	if of == nil || of.Rolls() { // of other classes that were set before
		return fmt.Errorf("rolling: %q is no class, or rolling itself", c.Rolling.Of)
	}
	keep := c.sourcesKeep(of)
	switch {
	case !slices.Equal(of.Ops, []wire.Op{wire.OpIncr}):
		return fmt.Errorf("rolling: %s has the ops %v: want ops: [incr] there", of.Name(), of.Ops)
	case of.Form.Lowest():
		return fmt.Errorf("rolling: %s has order: asc", of.Name())
	case of.Trim > 0:
		return fmt.Errorf("rolling: %s is trimmed, so that its boards lack members", of.Name())
	case !sameNames(c.Dimensions(), of.Dimensions()):
		return fmt.Errorf("rolling: the dimensions are %q, those of %s %q: want the same", c.Dimensions(), of.Name(), of.Dimensions())
	case of.Keep < keep && !of.keepUnset:
		return fmt.Errorf("rolling: %s has keep %v: want at least %v there, %d periods", of.Name(), of.Keep, keep, c.Rolling.Last+1)
	case of.Orders < minDurableOrders:
		return fmt.Errorf("rolling: %s has orders %v: want at least %v there, as it must be durable", of.Name(), of.Orders, minDurableOrders)
	case c.Orders < of.Orders:
		return fmt.Errorf("rolling: orders are %v, those of %s %v: want at least that", c.Orders, of.Name(), of.Orders)
	}
	return nil
}

// sourcesKeep returns how long a class has to keep the boards that a rolling one is the sum of.
func (c *Class) sourcesKeep(of *Class) time.Duration {
	return time.Duration(c.Rolling.Last+1) * of.Calendar().Length()
}

func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// checkRolls checks the rolling classes, and tells their sources in changed copies.
func (all Classes) checkRolls() error {
	rolls := make(map[string][]string)
	for _, c := range all {
		for _, name := range c.FeedNames() {
			if fed := all.Class(name); fed != nil && fed.Rolls() {
				return c.wrong(fmt.Errorf("feeds %s, which is rolling", name))
			}
		}
		if !c.Rolls() {
			continue
		}
		if err := all.checkSources(c); err != nil {
			return c.wrong(err)
		}
		rolls[c.Rolling.Of] = append(rolls[c.Rolling.Of], c.Name())
	}
	for i, c := range all {
		names := rolls[c.Name()]
		if len(names) == 0 && len(c.RolledBy) == 0 {
			continue
		}
		of := *c
		if of.RolledBy = names; len(names) > 0 {
			if err := of.needDurable("class " + names[0] + " sums up this one, so it must be durable, too"); err != nil {
				return of.wrong(err)
			}
		}
		for _, name := range names {
			if of.keepUnset {
				of.Keep = max(of.Keep, all.Class(name).sourcesKeep(c))
			}
		}
		all[i] = &of
	}
	return nil
}

// RolledInto returns the boards of a rolling class that an increment changes: of the same period and the next.
func (c *Class) RolledInto(b class.Board) (into []class.Board, err error) {
	next, err := c.Calendar().Next(b.Period)
	if err != nil {
		return nil, err
	}
	for _, p := range []class.Period{b.Period, next} {
		to, err := c.In(b.Dims, p)
		if err != nil {
			return nil, err
		}
		into = append(into, to)
	}
	return into, nil
}

// Sources returns the periods whose sums a rolling board is given when they end, the earliest first.
func (c *Class) Sources(p class.Period) (ended []class.Period, err error) {
	for range c.Rolling.Last - 1 {
		if p, err = c.Calendar().Previous(p); err != nil {
			return nil, err
		}
		ended = append(ended, p)
	}
	ended = ended[1:]
	slices.Reverse(ended)
	return ended, nil
}
