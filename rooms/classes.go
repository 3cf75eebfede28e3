package rooms

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"rankcache"
	"rankcache/class"
	"rankcache/wire"
)

// Classes are the classes of a rooms file, in its order. They are immutable after parsing.
type Classes []*Class

// NewCalendar makes the calendar of a class, as [class.NewCalendar] does.
type NewCalendar func(period, tz string) (class.Calendar, error)

// read appends the classes of a list, which go with some others; source is what their errors begin with.
func (all *Classes) read(list *yaml.Node, source string, calendar NewCalendar, others Classes) error {
	var sums []func(Classes) error // finish what needs another class, which may be further down
	err := each(list, func(n *yaml.Node) error {
		c, finish, err := readClass(n, source, calendar)
		if err != nil {
			return err
		}
		if *all = append(*all, c); c.Rolls() {
			sums = append(sums, finish)
			return nil
		}
		return finish(nil)
	})
	plain := slices.DeleteFunc(append(slices.Clone(*all), others...), (*Class).Rolls)
	for i := 0; err == nil && i < len(sums); i++ {
		err = sums[i](plain)
	}
	return err
}

// Class returns the class of a name, or nil.
func (all Classes) Class(name string) *Class {
	i := slices.IndexFunc(all, func(c *Class) bool { return c.Name() == name })
	if i < 0 {
		return nil
	}
	return all[i]
}

// ByIDs returns the class that has the ids, or nil.
func (all Classes) ByIDs(ids IDs) *Class {
	i := slices.IndexFunc(all, func(c *Class) bool { return c.IDs == ids && ids != IDs{} })
	if i < 0 {
		return nil
	}
	return all[i]
}

// Board returns the board of a class that has the id, and its class, or false if no class of the file makes the id.
func (all Classes) Board(id rankcache.BoardID) (class.Board, *Class, bool) {
	for _, c := range all {
		if !c.Matches(id) { // which is quick: each update is looked up
			continue
		}
		if b, ok := c.Parse(id); ok { // no two classes make one id
			return b, c, true
		}
	}
	return class.Board{}, nil, false
}

// Before returns the board of the period before that of a board. The error tells why there is none.
func (all Classes) Before(id rankcache.BoardID) (class.Board, error) {
	b, c, ok := all.Board(id)
	if !ok {
		return b, fmt.Errorf("board %s is of no class, so that it has no period before", id)
	}
	before, err := b.Previous()
	if err != nil {
		return before, fmt.Errorf("class %s: %w", c.Name(), err)
	}
	return before, nil
}

// Periodic reports whether a class of the file has periods.
func (all Classes) Periodic() bool {
	return slices.ContainsFunc(all, func(c *Class) bool { return c.Calendar().Periodic() })
}

// ClassBoards returns the rules that the classes' modes amount to at a time, the most important first: boards that run
// or ended within grace, then those that begin within lead, then lingering ones.
func (all Classes) ClassBoards(now time.Time) []Rule {
	var rules [stages][]Rule
	for _, c := range all {
		if c.Mode == ModeNone {
			continue
		}
		for of, periods := range c.periods(now) {
			for _, p := range periods {
				for _, b := range c.boardsIn(p) {
					rules[of] = append(rules[of], Rule{Match: string(b), Mode: c.Mode, Lingers: stage(of) == stageLingering})
				}
			}
		}
	}
	return slices.Concat(rules[:]...)
}

// check checks the classes with each other, and makes fed ones durable. Errors have the line further down.
func (all Classes) check() error {
	if len(all) > MaxClasses {
		return fmt.Errorf("%d classes, want at most %d", len(all), MaxClasses)
	}
	for i, c := range all {
		for _, before := range all[:i] {
			if c.Name() == before.Name() {
				return c.wrong(fmt.Errorf("there is another one in line %d: keep one", before.line))
			}
			if c.IDs == before.IDs && c.IDs != (IDs{}) {
				return c.wrong(fmt.Errorf("ids: class %s has the same: a class has its own", before.Name()))
			}
			if err := class.Conflict(before.Class, c.Class); err != nil {
				return c.wrong(err)
			}
		}
	}
	done := make(map[*Class]bool)
	boards, lingering := 0, 0
	for _, c := range all {
		if err := all.checkCircles(c, nil, done); err != nil {
			return err
		}
		if err := all.checkFeeds(c); err != nil {
			return c.wrong(err)
		}
		if err := cmp.Or(all.checkGroup(c), all.checkSplit(c)); err != nil {
			return c.wrong(err)
		}
		if boards += c.Boards(); boards > MaxClassBoards {
			return c.wrong(fmt.Errorf("modes of classes name more than %d boards in each period", MaxClassBoards))
		}
		if lingering += c.Lingering(); lingering > MaxClassBoards {
			return c.wrong(fmt.Errorf("linger: more than %d ended boards of all classes would be in memory: want a shorter time", MaxClassBoards))
		}
	}
	if err := all.makeFedDurable(); err != nil {
		return err
	}
	for i := range all {
		if err := all.checkWays(i); err != nil {
			return err
		}
	}
	if err := all.checkRolls(); err != nil {
		return err
	}
	return all.checkBoards(rankcache.BoardID.Check)
}

// checkBoards returns the first error of check, which is asked for the boards of modes.
func (all Classes) checkBoards(check func(rankcache.BoardID) error) error {
	for _, c := range all {
		for _, b := range c.someBoards() {
			if err := check(b); err != nil {
				return c.wrong(err)
			}
		}
	}
	return nil
}

func (all Classes) checkFeeds(c *Class) error {
	for _, f := range c.Feeds {
		fed := all.Class(f.Class)
		if fed == nil {
			return fmt.Errorf("feeds %.60q, which is not a class", f.Class)
		}
		if err := checkFed(c, fed, f.Dims); err != nil {
			return fmt.Errorf("feeds %s: %w", f.Class, err)
		}
	}
	return nil
}

func (all Classes) checkGroup(c *Class) error {
	if c.Group == "" {
		return nil
	}
	group := all.Class(c.Group)
	switch {
	case group == nil:
		return fmt.Errorf("group %.60q is not a class", c.Group)
	case group == c:
		return errors.New("group: want another class: its members are the groups")
	case !slices.Equal(group.Dimensions(), c.Dimensions()) && len(group.Dimensions()) > 0:
		return fmt.Errorf("group %s: its dimensions are %q, those of this class %q: want the same or none", c.Group, group.Dimensions(), c.Dimensions())
	case !sameStarts(c.Calendar(), group.Calendar()):
		return fmt.Errorf("group %s: its starts is %s, that of this class %s: want the same", c.Group, startsText(group.Calendar()), startsText(c.Calendar()))
	case !c.Calendar().Within(group.Calendar()):
		return fmt.Errorf("group %s: its period is %s (%s): want one that has each period of this class, %s (%s), in it",
			c.Group, group.Calendar(), group.Calendar().Zone(), c.Calendar(), c.Calendar().Zone())
	}
	return nil
}

// sameStarts reports whether periods of from do not begin at another time of the day or week than those of to.
func sameStarts(from, to class.Calendar) bool { return from.Within(to) || from.Starts() == to.Starts() }

func startsText(c class.Calendar) string { return cmp.Or(c.Starts(), "00:00") }

// checkCircles follows the feeds of c, by way of the classes of path. It does not follow those of done again.
func (all Classes) checkCircles(c *Class, path []string, done map[*Class]bool) error {
	path = append(slices.Clip(path), c.Name())
	if first := slices.Index(path, c.Name()); first < len(path)-1 {
		return c.wrong(fmt.Errorf("feeds go in a circle: %s", strings.Join(path[first:], ", ")))
	}
	if done[c] {
		return nil
	}
	for _, name := range c.FeedNames() {
		if fed := all.Class(name); fed != nil {
			if err := all.checkCircles(fed, path, done); err != nil {
				return err
			}
		}
	}
	done[c] = true
	return nil
}

// checkFed checks that a fed class can take each increment of c.
func checkFed(c, fed *Class, groups map[string]string) error {
	from, to := c.Calendar(), fed.Calendar()
	for _, name := range fed.Dimensions() {
		if !slices.Contains(c.Dimensions(), name) && groups[name] == "" {
			return fmt.Errorf("its dimension %s is none of this class: want it in dims, as in {class: %s, dims: {%s: a group}}", name, fed.Name(), name)
		}
	}
	for name := range groups {
		if !slices.Contains(fed.Dimensions(), name) {
			return fmt.Errorf("dims: %.40s is none of its dimensions", name)
		}
	}
	switch {
	case !slices.Contains(fed.Ops, c.Ops[0]):
		return fmt.Errorf("its ops are %v: want %s among them", fed.Ops, c.Ops[0])
	case to.Periodic() && from.Periodic() && from.Zone() != to.Zone():
		return fmt.Errorf("its tz is %s, that of this class %s: want the same", to.Zone(), from.Zone())
	case !sameStarts(from, to):
		return fmt.Errorf("its starts is %s, that of this class %s: want the same", startsText(to), startsText(from))
	case !from.Within(to):
		return fmt.Errorf("its period is %s, that of this class %s: want each period to lie in one of the fed class", to, from)
	case to.Periodic() && fed.Grace < c.Grace:
		return fmt.Errorf("its grace is %v, that of this class %v: want at least that", fed.Grace, c.Grace)
	case fed.Orders < c.Orders:
		return fmt.Errorf("its orders are %v, those of this class %v: want at least that", fed.Orders, c.Orders)
	case fed.Order() != c.Order():
		return fmt.Errorf("its order is %s, that of this class %s: want the same", fed.Order(), c.Order())
	case fed.Form.Integer() && !c.Form.Integer():
		return fmt.Errorf("its scores are integers, but those of this class are not: want score: integer here")
	}
	return nil
}

// Log tells where a board's updates are.
type Log struct {
	Topic  string
	Shared bool // other boards have the topic, too: the key of its updates is then their board
	// First is before the board's first update, and Last is until when commands for it arrive; those that
	// have may be applied later. Zero: not known.
	First, Last time.Time
	Final       bool // the board, once closed, is to have a final
}

// earliest is how long before its period a board's first update can be: commands come a minute early, clocks differ.
const earliest = 3 * time.Minute

// Log returns where a board's updates are: those of parts of days in the topic of class and day.
func (all Classes) Log(names wire.Names, id rankcache.BoardID) Log {
	own := names.Topic(id)
	b, kind, ok := all.Board(id)
	if !ok || b.Period.Tag == "" {
		return Log{Topic: own}
	}
	topic := b.Topic(names)
	first := b.Period.Start
	if before, err := b.Class.Calendar().Previous(b.Period); err == nil && kind.Rolls() {
		first = before.Start
	}
	return Log{Topic: topic, Shared: topic != own, First: first.Add(-earliest), Last: b.Period.End.Add(kind.Grace), Final: kind.Ledger}
}
