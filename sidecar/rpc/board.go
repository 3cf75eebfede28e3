package rpc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/rooms"
	"rankcache/sidecar/encode"
	"rankcache/sidecar/live"
)

const defaultLimit = 50 // how many rows a page has if the caller gives no number

// address names a board, by id or class. Zero values are those of a caller that gives none.
type address struct {
	board    rankcache.BoardID
	class    string // "": the board is named by its id
	dims     map[string]string
	at       string // now, previous, a time or a tag; "": now
	room     string
	order    rankcache.Direction
	limit    int
	profiles bool
	show
}

// show is what rows show beside rank and score.
type show struct {
	mode              rankcache.RankMode
	percentile, trend bool
}

// found is the board that an address names at one time.
type found struct {
	live.Key
	show
	lasts time.Duration // until the address names another board, or another state of it is told; 0: for ever
}

type boardFinder struct{ *Server }

func (s boardFinder) find(a *address) (found, *encode.Problem) {
	f := found{Key: live.Key{Board: a.board, Room: a.room, Order: a.order, Limit: a.limit, Profiles: a.profiles}, show: a.show}
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
		return f, encode.BadArgument("limit", fmt.Sprintf("is %d: want 1 to %d", a.limit, most))
	case a.profiles && s.reader.Profiles() == nil:
		return f, encode.BadArgument("profiles", "no profile source is configured")
	}
	if err := f.Board.Check(); err != nil {
		return f, encode.BadArgument("board", err.Error())
	}
	if a.room != "" {
		if err := rooms.CheckUID(a.room); err != nil {
			return f, encode.BadArgument("room", err.Error())
		}
	}
	_, form, _, _ := s.reader.Tiers().Of(f.Board, f.Room)
	f.Order = form.Named(a.order)
	return f, s.findBefore(a, &f)
}

func (s boardFinder) findBefore(a *address, f *found) *encode.Problem {
	if !a.trend {
		return nil
	}
	before, err := s.cfg.Classes().Before(f.Board)
	switch {
	case err != nil && a.class != "":
		return &encode.Problem{Code: encode.CodeTrend, Detail: err.Error()}
	case err != nil:
		return encode.BadArgument("trend", err.Error())
	}
	f.Before = live.Before{Board: before.ID, Tag: before.Period.Tag}
	return nil
}

func (s boardFinder) findClass(a *address, f *found) (*rooms.Class, *encode.Problem) {
	c := s.cfg.Classes().Class(a.class)
	if c == nil {
		return nil, &encode.Problem{Code: encode.CodeUnknownClass, Detail: "want a class of the rooms file: GET /v1/classes of the data port lists them"}
	}
	now := s.cfg.Now()
	period, err := c.PeriodAt(cmp.Or(a.at, rooms.Now), now)
	if err != nil {
		return nil, encode.PeriodProblem(err)
	}
	board, err := c.In(a.dims, period.Period)
	if err != nil {
		return nil, dimensionProblem(c, a.dims, err)
	}
	if period.State == rooms.PeriodGone && !c.Ledger { // else there may be a final
		return nil, &encode.Problem{Code: encode.CodeUnknownPeriod, Detail: c.Gone(period.Period).Error()}
	}
	f.Board, f.Class = board.ID, live.Class{Name: c.Name(), Period: period.Period, State: period.State}
	if !period.Until.IsZero() {
		f.lasts = period.Until.Sub(now)
	}
	return c, nil
}

func dimensionProblem(c *rooms.Class, dims map[string]string, err error) *encode.Problem {
	names := c.Dimensions()
	for name, value := range dims {
		switch {
		case !slices.Contains(names, name):
			return encode.BadArgument(name, "is no argument here: the class has the dimensions "+strings.Join(names, ", "))
		case class.CheckDimension(value) != nil:
			return encode.BadArgument(name, fmt.Sprintf("is %.80q: %v", value, class.CheckDimension(value)))
		}
	}
	for _, name := range names {
		if dims[name] == "" {
			return encode.BadArgument(name, "is missing: the class has the dimensions "+strings.Join(names, ", "))
		}
	}
	return encode.BadArgument("dimensions", err.Error())
}

// query returns how the board is read, without rows and members.
func (f *found) query() rankcache.Query {
	return rankcache.Query{Board: f.Board, Room: f.Room, Order: f.Order, Mode: f.mode, Percentile: f.percentile}
}
