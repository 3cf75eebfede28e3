package rooms

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"rankcache"
	"rankcache/class"
)

// MaxClassBoards is the most boards that the modes of classes name at a time, not counting those that begin soon.
const MaxClassBoards = 1000

func (c *Class) readMode(n *yaml.Node) error {
	if n.Value == ModeNone.String() {
		return nil
	}
	err := mode(&c.Mode)(n)
	if err == nil && c.Mode == ModeBlocked {
		err = at(n, errors.New("a class can't be blocked: block its boards by a pattern under boards"))
	}
	return err
}

func (c *Class) readDims(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return at(n, errors.New("want a mapping of dimensions to lists of values"))
	}
	c.Dims = make(map[string][]string)
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i]
		if _, twice := c.Dims[name.Value]; twice {
			return at(name, fmt.Errorf("dimension %.40q twice", name.Value))
		}
		c.Dims[name.Value] = nil
		if err := each(n.Content[i+1], asString(func(s string) error { return c.addValue(name.Value, s) })); err != nil {
			return err
		}
	}
	return nil
}

func (c *Class) addValue(name, value string) error {
	if len(c.Dims[name]) == MaxClassBoards || slices.Contains(c.Dims[name], value) {
		return fmt.Errorf("dimension %.40s has %.80q twice, or more than %d values", name, value, MaxClassBoards)
	}
	c.Dims[name] = append(c.Dims[name], value)
	if err := class.CheckDimension(value); err != nil {
		return fmt.Errorf("dimension %.40s is %.80q: %w", name, value, err)
	}
	return nil
}

// checkMode checks that the boards of a mode are known: each dimension has values.
func (c *Class) checkMode() error {
	names := c.Dimensions()
	for name := range c.Dims {
		if !slices.Contains(names, name) {
			return fmt.Errorf("dims: %.40s is not in board %q", name, c.Template())
		}
	}
	for _, name := range names {
		if c.Mode != ModeNone && len(c.Dims[name]) == 0 {
			return fmt.Errorf("mode %s: want the values of %s, as in dims: {%s: [\"1\", \"2\"]}", c.Mode, name, name)
		}
	}
	return nil
}

// Boards returns how many boards of one period the mode is for, or some number above [MaxClassBoards].
func (c *Class) Boards() int {
	if c.Mode == ModeNone {
		return 0
	}
	boards := 1
	for _, values := range c.Dims {
		boards = min(boards*len(values), MaxClassBoards+1)
	}
	if c.Split() {
		boards *= c.Shards()
	}
	return boards
}

// someBoards returns the boards of one period, with the longest ids, that the class's mode is for.
func (c *Class) someBoards() []rankcache.BoardID {
	if c.Mode == ModeNone {
		return nil
	}
	return c.boardsIn(class.Period{Tag: c.Calendar().Sample()})
}

// boardsIn returns the boards of a period, one for each combination of values, as shards if they are split.
func (c *Class) boardsIn(p class.Period) []rankcache.BoardID {
	ids := []string{c.Pattern(p)}
	for _, name := range c.Dimensions() {
		var filled []string
		for _, id := range ids {
			for _, value := range c.Dims[name] {
				filled = append(filled, strings.Replace(id, "{"+name+"}", value, 1))
			}
		}
		ids = filled
	}
	boards := make([]rankcache.BoardID, 0, len(ids)*max(c.Shards(), 1))
	for _, id := range ids {
		if b := rankcache.BoardID(id); c.Split() {
			boards = append(boards, class.ShardIDs(b, c.Shards())...)
		} else {
			boards = append(boards, b)
		}
	}
	return boards
}
