package rpc

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/rooms"
	"rankcache/sidecar/internal/apijson"
	"rankcache/sidecar/internal/live"
)

// defaultLimit is how many rows a page has if the caller gives no number.
const defaultLimit = 50

// address names a board, by its id or by its class. The zero values of the other fields are
// those of a caller that gives none.
type address struct {
	board    rankcache.BoardID
	class    string // "": the board is named by its id
	dims     map[string]string
	at       string // now, previous, a time or a tag; "": now
	room     string
	order    rankcache.Direction
	limit    int
	profiles bool
}

// found is the board that an address names at one time.
type found struct {
	live.Key
	lasts time.Duration // until the address names another board, or another state of it is told; 0: for ever
}

// boardFinder finds the boards that requests name.
type boardFinder struct{ *Server }

// find returns the board of the address. A limit of 0 is the default.
func (s boardFinder) find(a *address) (found, *apijson.Problem) {
	f := found{Key: live.Key{Board: a.board, Room: a.room, Order: a.order, Limit: a.limit, Profiles: a.profiles}}
	most := rankcache.MaxTop
	if a.class != "" {
		c, p := s.findClass(a, &f)
		if p != nil {
			return f, p
		}
		most = c.Top
	}
	if f.Limit == 0 {
		f.Limit = min(defaultLimit, most)
		if a.class != "" {
			f.Limit = most
		}
	}
	switch {
	case f.Limit < 1 || f.Limit > most:
		return f, apijson.BadArgument("limit", fmt.Sprintf("is %d: want 1 to %d", a.limit, most))
	case a.profiles && s.reader.Profiles() == nil:
		return f, apijson.BadArgument("profiles", "no profile source is configured")
	}
	if err := f.Board.Check(); err != nil {
		return f, apijson.BadArgument("board", err.Error())
	}
	if a.room != "" {
		if err := rooms.CheckUID(a.room); err != nil {
			return f, apijson.BadArgument("room", err.Error())
		}
	}
	return f, nil
}

func (s boardFinder) findClass(a *address, f *found) (*rooms.Class, *apijson.Problem) {
	classes := s.cfg.Classes().Classes
	i := slices.IndexFunc(classes, func(c *rooms.Class) bool { return c.Name() == a.class })
	if i < 0 {
		return nil, &apijson.Problem{Code: apijson.CodeUnknownClass, Detail: "want a class of the rooms file: GET /v1/classes of the data port lists them"}
	}
	c := classes[i]
	now := s.cfg.Now()
	period, moves, err := periodOf(c.Calendar(), a.at, now)
	if err != nil {
		return nil, apijson.BadArgument("at", err.Error())
	}
	board, err := c.In(a.dims, period)
	if err != nil {
		return nil, dimensionProblem(c, a.dims, err)
	}
	f.Board, f.Class = board.ID, live.Class{Name: c.Name()}
	if period.Tag == "" {
		return c, nil
	}
	f.Class.Period = live.Period{Tag: period.Tag, Start: period.Start, End: period.End}
	var until time.Time
	if f.Class.State, f.Class.Over, until = stateOf(c, period, now); f.Class.State == "" {
		return nil, &apijson.Problem{Code: apijson.CodeUnknownPeriod, Detail: fmt.Sprintf("the period %s ended on %s, boards are kept for %v",
			period.Tag, period.End.Format(time.RFC3339), c.Keep)}
	}
	if !moves.IsZero() && moves.Before(until) {
		until = moves
	}
	f.lasts = until.Sub(now)
	return c, nil
}

func dimensionProblem(c *rooms.Class, dims map[string]string, err error) *apijson.Problem {
	names := c.Dimensions()
	for name, value := range dims {
		switch {
		case !slices.Contains(names, name):
			return apijson.BadArgument(name, "is no argument here: the class has the dimensions "+strings.Join(names, ", "))
		case class.CheckDimension(value) != nil:
			return apijson.BadArgument(name, fmt.Sprintf("is %.80q: %v", value, class.CheckDimension(value)))
		}
	}
	for _, name := range names {
		if dims[name] == "" {
			return apijson.BadArgument(name, "is missing: the class has the dimensions "+strings.Join(names, ", "))
		}
	}
	return apijson.BadArgument("dimensions", err.Error())
}

// periodOf returns the period that at names, and when it names another one; zero: never.
func periodOf(calendar class.Calendar, at string, now time.Time) (p class.Period, moves time.Time, err error) {
	current := at == "" || at == "now"
	switch {
	case !calendar.Periodic() && current:
		return p, moves, nil
	case !calendar.Periodic():
		return p, moves, fmt.Errorf("the class has no periods: leave it out")
	case !current && at != "previous":
		if t, failed := time.Parse(time.RFC3339, at); failed == nil {
			p, err = calendar.At(t)
		} else if p, err = calendar.Parse(at); err != nil {
			err = fmt.Errorf("is %.40q: want now, previous, a time as in RFC 3339 or a tag of the class", at)
		}
		return p, moves, err
	}
	if p, err = calendar.At(now); err != nil {
		return p, moves, err
	}
	if moves = p.End; !current {
		p, err = calendar.Previous(p)
	}
	return p, moves, err
}

// stateOf returns the state of a period as answers tell it, "" if its boards are not kept any
// more, whether its grace is over, and until when that is so.
func stateOf(c *rooms.Class, p class.Period, now time.Time) (state string, over bool, until time.Time) {
	graceEnd, gone := p.End.Add(c.Grace), p.End.Add(c.Keep)
	switch {
	case now.Before(p.Start):
		return "upcoming", false, p.Start
	case now.Before(p.End):
		return "running", false, p.End
	case now.Before(graceEnd):
		return "ended", false, graceEnd
	case now.Before(gone):
		return "ended", true, gone
	}
	return "", false, time.Time{}
}

// query returns how the board is read, without rows and members.
func (f *found) query() rankcache.Query {
	return rankcache.Query{Board: f.Board, Room: f.Room, Order: f.Order}
}
