package compat

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/rooms"
)

// classByIDs returns the class that a request names by its ids.
func classByIDs(file *rooms.File, act, rank integer) (*rooms.Class, error) {
	kind := file.ByIDs(rooms.IDs{Act: int(act), Rank: int(rank)})
	if kind == nil {
		return nil, notFound("unknown_class", "No such class", "no class of the rooms file has ids with this actId and rankId")
	}
	return kind, nil
}

type name struct {
	kind  *rooms.Class // nil: it is a board
	board rankcache.BoardID
	dims  map[string]string
	at    string // which period of the class; "": the running one
}

// nameOf returns the class that rank_name names, else the board with that id.
func nameOf(file *rooms.File, rankName string, rankType text) (n name, err error) {
	if n.kind = file.Class(rankName); n.kind != nil {
		return n, n.choose(string(rankType))
	}
	n.board = rankcache.BoardID(rankName)
	if err := n.board.Check(); err != nil {
		return n, badField("rank_name", "is no class, and %w", err)
	}
	if rankType != "" {
		return n, unsupported("rank_type", "rank_name %s is no class but a board, which has no types", rankName)
	}
	return n, nil
}

// noName returns the error of a rank_name that is no class and no board: a change would make one that never ends.
func noName(rankName string) error {
	return notFound("unknown_class", "No such class", fmt.Sprintf("rank_name %.60s is no class, and no board that exists or that the rooms file names", rankName))
}

// exists reports whether there is, or was, a board that the answer is of.
func exists(a *rankcache.Answer) bool { return a.Members > 0 || a.Seq > 0 }

// choose takes rank_type: dimensions in the template's order, with commas between, and behind an @ the period.
func (n *name) choose(rankType string) error {
	list, at, tagged := strings.Cut(rankType, "@")
	if _, err := time.Parse("20060102", list); err == nil && !tagged && len(n.kind.Dimensions()) == 0 {
		list, at, tagged = "", list, true
	}
	if n.at = at; tagged && at == "" {
		return badField("rank_type", "want a tag, now or previous behind @")
	}
	names, values := n.kind.Dimensions(), strings.Split(list, ",")
	if list == "" {
		values = nil
	}
	if len(values) != len(names) {
		return badField("rank_type", "class %s has the dimensions %q, and %.80q is given: want a value for each in this order, with commas between them", n.kind.Name(), names, list)
	}
	n.dims = make(map[string]string, len(names))
	for i, name := range names {
		n.dims[name] = values[i]
	}
	return nil
}

// boardOf returns the board that is named, and how far its period has come.
func (n *name) boardOf(now time.Time) (rankcache.BoardID, rooms.NamedPeriod, error) {
	if n.kind == nil {
		return n.board, rooms.NamedPeriod{}, nil
	}
	period, err := n.kind.PeriodAt(cmp.Or(n.at, rooms.Now), now)
	if err != nil {
		return "", period, noBoard("rank_type", fmt.Errorf("period: %w", err))
	}
	board, err := n.kind.In(n.dims, period.Period)
	if err != nil {
		return "", period, badField("rank_type", "%w", err)
	}
	return board.ID, period, nil
}

// noBoard returns the error of a request for which a class has no board, as the field has no period.
func noBoard(field string, err error) error {
	if gap, ok := errors.AsType[*class.Gap](err); ok {
		return notFound("no_period", "No season at that time", gap.Error())
	}
	return badField(field, "%w", err)
}
