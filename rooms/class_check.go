package rooms

import (
	"fmt"
	"slices"
	"strings"

	"rankcache"
	"rankcache/class"
	"rankcache/wire"
)

// checkClasses checks the classes with each other. Errors have the line of the class
// that is further down, or that feeds.
func (f *File) checkClasses() error {
	if len(f.Classes) > MaxClasses {
		return fmt.Errorf("rooms file has %d classes, want at most %d", len(f.Classes), MaxClasses)
	}
	for i, c := range f.Classes {
		for _, before := range f.Classes[:i] {
			if c.Name() == before.Name() {
				return c.wrong(fmt.Errorf("there is another one in line %d: keep one", before.line))
			}
			if err := class.Conflict(before.Class, c.Class); err != nil {
				return c.wrong(err)
			}
		}
	}
	done := make(map[*Class]bool)
	boards := 0
	for _, c := range f.Classes {
		if err := f.checkCircles(c, nil, done); err != nil {
			return err
		}
		if err := f.checkFeeds(c); err != nil {
			return c.wrong(err)
		}
		if boards += c.boards(); boards > MaxClassBoards {
			return c.wrong(fmt.Errorf("modes of classes name more than %d boards in each period", MaxClassBoards))
		}
	}
	return nil
}

func (c *Class) wrong(err error) error {
	return fmt.Errorf("rooms file: line %d: class %s: %w", c.line, c.Name(), err)
}

// Class returns the class of a name, or nil.
func (f *File) Class(name string) *Class {
	i := slices.IndexFunc(f.Classes, func(c *Class) bool { return c.Name() == name })
	if i < 0 {
		return nil
	}
	return f.Classes[i]
}

// Board returns the board of a class that has the id, and its class, or false if no
// class of the file makes the id.
func (f *File) Board(id rankcache.BoardID) (class.Board, *Class, bool) {
	for _, c := range f.Classes {
		if b, ok := c.Parse(id); ok { // no two classes make one id
			return b, c, true
		}
	}
	return class.Board{}, nil, false
}

// Periodic reports whether a class of the file has periods.
func (f *File) Periodic() bool {
	return slices.ContainsFunc(f.Classes, func(c *Class) bool { return c.Calendar().Periodic() })
}

func (f *File) checkFeeds(c *Class) error {
	for _, name := range c.Feeds {
		fed := f.Class(name)
		if fed == nil {
			return fmt.Errorf("feeds %.60q, which is not a class of this file", name)
		}
		if err := c.checkFed(fed); err != nil {
			return fmt.Errorf("feeds %s: %w", name, err)
		}
	}
	return nil
}

// checkCircles follows the feeds of c, by way of the classes of path. It does not
// follow those of done again.
func (f *File) checkCircles(c *Class, path []string, done map[*Class]bool) error {
	path = append(slices.Clip(path), c.Name())
	if first := slices.Index(path, c.Name()); first < len(path)-1 {
		return c.wrong(fmt.Errorf("feeds go in a circle: %s", strings.Join(path[first:], ", ")))
	}
	if done[c] {
		return nil
	}
	for _, name := range c.Feeds {
		if fed := f.Class(name); fed != nil {
			if err := f.checkCircles(fed, path, done); err != nil {
				return err
			}
		}
	}
	done[c] = true
	return nil
}

// checkFed checks that a fed class can take each increment of c.
func (c *Class) checkFed(fed *Class) error {
	from, to := c.Calendar(), fed.Calendar()
	for _, name := range fed.Dimensions() {
		if !slices.Contains(c.Dimensions(), name) {
			return fmt.Errorf("its dimension %s is none of this class", name)
		}
	}
	switch {
	case !slices.Contains(fed.Ops, wire.OpIncr):
		return fmt.Errorf("its ops are %v: want incr among them", fed.Ops)
	case to.Periodic() && from.Periodic() && from.Zone() != to.Zone():
		return fmt.Errorf("its tz is %s, that of this class %s: want the same", to.Zone(), from.Zone())
	case !from.Within(to):
		return fmt.Errorf("its period is %s, that of this class %s: want each period to lie in one of the fed class", to, from)
	case to.Periodic() && fed.Grace < c.Grace:
		return fmt.Errorf("its grace is %v, that of this class %v: want at least that", fed.Grace, c.Grace)
	case fed.Orders < c.Orders:
		return fmt.Errorf("its orders are %v, those of this class %v: want at least that", fed.Orders, c.Orders)
	case fed.Integers && !c.Integers:
		return fmt.Errorf("its scores are integers, but those of this class are not: want score: integer here")
	}
	return nil
}

// CheckChange returns an error if a class of the file differs from the one of the same
// name in old in what can't change while boards of it live: board, period, tz, ties
// and feeds.
func (f *File) CheckChange(old *File) error {
	for _, c := range f.Classes {
		before := old.Class(c.Name())
		if before == nil {
			continue
		}
		then, now := before.lasting(), c.lasting()
		for i, key := range [...]string{"board", "period", "tz", "ties", "feeds"} {
			if then[i] != now[i] {
				return c.wrong(fmt.Errorf("%s can't change from %q to %q while rankcache runs: make a new class", key, then[i], now[i]))
			}
		}
	}
	return nil
}

func (c *Class) lasting() [5]string {
	feeds := slices.Sorted(slices.Values(c.Feeds))
	return [...]string{c.Template(), c.Calendar().String(), c.Calendar().Zone(), string(c.Ties), strings.Join(feeds, ", ")}
}
