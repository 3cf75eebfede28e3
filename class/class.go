package class

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rankcache"
	"rankcache/wire"
)

const MaxName = 40 // the most characters of a class's name

// Class is one kind of board. It is immutable.
type Class struct {
	name, board string
	template    template
	calendar    Calendar
	tag         string // of some period
	shards      int    // see [Class.Split]; 0: not split
}

// Board is one board of a class. It is immutable.
type Board struct {
	ID     rankcache.BoardID
	Class  *Class
	Dims   map[string]string
	Period Period // zero if the class has none
	shard  int    // which one of the class's it is, from 1; 0: a whole board
}

// New returns the class of boards whose ids are made from a template such as "gift:{zone}:{period}": each dimension
// once, and {period} if the calendar has periods. The longest id must be a board id.
func New(name, board string, c Calendar) (*Class, error) {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || name == "" || len(name) > MaxName {
		return nil, fmt.Errorf("class name %.60q: want 1 to %d characters of a-z 0-9 - _", name, MaxName)
	}
	t, err := parseTemplate(board, c.Periodic())
	if err != nil {
		return nil, err
	}
	class := &Class{name: name, board: board, template: t, calendar: c, tag: c.Sample()}
	if err := rankcache.BoardID(class.longest()).Check(); err != nil {
		return nil, fmt.Errorf("board %.100q, longest id: %w", board, err)
	}
	return class, nil
}

func (c *Class) longest() string {
	return c.template.fill(func(name string) string {
		if name == period {
			return c.tag
		}
		return strings.Repeat("x", MaxDimension)
	})
}

// Name returns the name of the class.
func (c *Class) Name() string { return c.name }

// Template returns what the class was made from.
func (c *Class) Template() string { return c.board }

// Calendar returns the calendar of the class's periods.
func (c *Class) Calendar() Calendar { return c.calendar }

// Dimensions returns the names of the dimensions in their order in ids. The slice is the caller's.
func (c *Class) Dimensions() []string {
	return slices.DeleteFunc(c.template.names(), func(name string) bool { return name == period })
}

// At returns the board of the period that t is in; between seasons the error is a [*Gap]. dims must have a value for
// each dimension and for nothing else; the board keeps it.
func (c *Class) At(dims map[string]string, t time.Time) (Board, error) {
	p, err := c.calendar.At(t)
	if err != nil {
		return Board{}, err
	}
	return c.In(dims, p)
}

// In returns the board of a period of the class's calendar, as [Class.At] does.
func (c *Class) In(dims map[string]string, p Period) (Board, error) {
	if err := c.checkDims(dims); err != nil {
		return Board{}, fmt.Errorf("class %s: %w", c.name, err)
	}
	id := rankcache.BoardID(c.fill(dims, p))
	if err := id.Check(); err != nil {
		return Board{}, fmt.Errorf("class %s: %w", c.name, err)
	}
	return Board{ID: id, Class: c, Dims: dims, Period: p}, nil
}

func (c *Class) fill(dims map[string]string, p Period) string {
	return c.template.fill(func(name string) string {
		if name == period {
			return p.Tag
		}
		return dims[name]
	})
}

// AppendID appends the id of a period's board to dst. values are the dimensions in order, as [CheckDimension] takes.
func (c *Class) AppendID(dst []byte, values []string, tag string) []byte {
	for _, s := range c.template {
		switch {
		case s.isTag():
			dst = append(dst, tag...)
		case s.placeholder:
			dst = append(dst, values[0]...)
			values = values[1:]
		default:
			dst = append(dst, s.text...)
		}
		dst = append(dst, s.sign...)
	}
	return dst
}

// Pattern returns the id of a period's boards with their dimensions left open, such as "gift:{zone}:20261122-17".
func (c *Class) Pattern(p Period) string {
	open := make(map[string]string)
	for _, name := range c.Dimensions() {
		open[name] = "{" + name + "}"
	}
	return c.fill(open, p)
}

func (c *Class) checkDims(dims map[string]string) error {
	names := c.Dimensions()
	for _, name := range names {
		value, ok := dims[name]
		if !ok {
			return fmt.Errorf("dimension %s is missing: want %s", name, strings.Join(names, ", "))
		}
		if err := CheckDimension(value); err != nil {
			return fmt.Errorf("dimension %s is %.80q: %w", name, value, err)
		}
	}
	if len(dims) > len(names) {
		return fmt.Errorf("dimensions are %.200q: want %q", slices.Sorted(maps.Keys(dims)), names)
	}
	return nil
}

// Parse is the inverse of [Class.At]: the board that has the id, which may be a shard; false if none of the class has.
func (c *Class) Parse(id rankcache.BoardID) (Board, bool) {
	whole, shard := c.cut(id)
	values, ok := c.template.parse(string(whole))
	if !ok {
		return Board{}, false
	}
	p, err := c.calendar.Parse(values[period])
	delete(values, period)
	if err != nil || c.checkDims(values) != nil {
		return Board{}, false
	}
	return Board{ID: id, Class: c, Dims: values, Period: p, shard: shard + 1}, true
}

// Matches reports whether the id has the form of the class's ids, quickly: a tag such as 20261399 counts for one.
func (c *Class) Matches(id rankcache.BoardID) bool {
	id, _ = c.cut(id)
	return c.template.matches(string(id), &c.calendar, c.tag)
}

// Start returns the text that all ids of the class have before the first sign or placeholder.
func (c *Class) Start() string {
	if c.template[0].placeholder {
		return ""
	}
	return c.template[0].text
}

// Next returns the board of the next period. Without one the error wraps [ErrPeriod].
func (b Board) Next() (Board, error) { return b.beside(b.Class.calendar.Next) }

// Previous returns the board of the period before. Without one the error wraps [ErrPeriod].
func (b Board) Previous() (Board, error) { return b.beside(b.Class.calendar.Previous) }

func (b Board) beside(move func(Period) (Period, error)) (Board, error) {
	p, err := move(b.Period)
	if err != nil {
		return Board{}, err
	}
	b.Period = p
	return b.As(b.Class)
}

// Topic returns the topic of the board's updates. Boards of parts of a day share one of their class and day.
func (b Board) Topic(n wire.Names) string {
	if u := b.Class.calendar.unit; u == part || u == hour {
		return n.ClassTopic(b.Class.name, b.Period.Tag[:dateLen])
	}
	return n.Topic(b.ID)
}

// DayEnd returns when the last period of a date such as 20261122 ends; false if no boards share its topic.
func (c *Class) DayEnd(text string) (time.Time, bool) {
	civil, err := time.Parse("20060102", text)
	if u := c.calendar.unit; err != nil || u != part && u != hour {
		return time.Time{}, false
	}
	return c.calendar.zone.begin(dateFrom(civil.Date()) + 1), true
}
