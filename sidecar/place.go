package sidecar

import (
	"time"

	"rankcache"
	"rankcache/rooms"
)

// places finds where boards are read: the operator's tiers, and the copies that are kept
// here.
type places struct {
	tiers  func() *rooms.Tiers
	check  func(rankcache.BoardID) error
	boards Boards
	hot    Hot
}

// place is where one board is read, found once per request.
type place struct {
	tier  Tier
	form  rankcache.ScoreForm
	board Board          // set for TierLocal
	top   *rankcache.Top // set for TierLocal and TierHot
	hotAt time.Time      // CurrentAt of a hot top
}

// find sets at, which is empty, to where q is read. A local board without a published
// head counts as not open; a board that is bypassed has no copy that may be read. An id that no
// board has is an error, before anything is asked for it. count is whether the hot tier counts
// the read.
func (p *places) find(q *Query, count bool, at *place) error {
	tiers := p.tiers()
	mode, form := tiers.Of(q.Board, q.Room)
	at.form = form
	bypassed := tiers.Bypassed(q.Board)
	if mode == rooms.ModeSuperHot && !bypassed {
		at.board, at.top = p.whole(q.Board)
	}
	local, hot := at.top != nil, false
	if !local {
		if err := p.check(q.Board); err != nil {
			return err
		}
	}
	if mode != rooms.ModeBlocked && p.hot != nil {
		if count {
			p.Count(q.Board)
		}
		if !local && !bypassed {
			if at.top, at.hotAt, hot = p.hot.Top(q.Board); !hot {
				at.top = nil
			}
		}
	}
	if at.tier = decide(mode, local, hot); at.tier == TierBlocked {
		return ErrBlocked
	}
	return nil
}

// whole returns the whole board that is kept here and its published head, nil if there is
// none.
func (p *places) whole(id rankcache.BoardID) (Board, *rankcache.Top) {
	if p.boards == nil {
		return nil, nil
	}
	b, ok := p.boards.Get(id)
	if !ok {
		return nil, nil
	}
	return b, b.Top()
}

// local returns the board that q is read from if a whole one is kept here, and how its
// scores are shown.
func (p *places) local(q *Query) (Board, rankcache.ScoreForm) {
	tiers := p.tiers()
	mode, form := tiers.Of(q.Board, q.Room)
	if mode != rooms.ModeSuperHot || p.boards == nil || tiers.Bypassed(q.Board) {
		return nil, form
	}
	if b, ok := p.boards.Get(q.Board); ok {
		return b, form
	}
	return nil, form
}

// Count has the hot tier count a read of the board.
func (p *places) Count(id rankcache.BoardID) {
	if p.hot != nil {
		p.hot.Count(id)
	}
}

// Tier returns where q is read now.
func (p *places) Tier(q *Query) Tier {
	var at place
	if p.find(q, false, &at) != nil {
		return TierBlocked
	}
	return at.tier
}

// Tiers returns the operator's tiers of this moment.
func (p *places) Tiers() *rooms.Tiers { return p.tiers() }

// known returns the member's row without a call to Redis: from the page, or from the hot
// head that it was cut from, or rank 0 where those are the whole board.
func (at *place) known(a *Answer, member string) (rankcache.Standing, bool) {
	rows := a.Page
	if a.Source == SourceHot {
		rows.Start, rows.Entries = 0, at.top.Entries
	}
	if row, ok := rowOf(rows, member); ok {
		return row, true
	}
	whole := rows.Start == 0 && len(rows.Entries) >= rows.Members
	return rankcache.Standing{Member: member}, whole
}

// rowOf returns the member's row on the page.
func rowOf(p rankcache.Page, member string) (rankcache.Standing, bool) {
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Member == member {
			return rankcache.Standing{Member: member, Score: e.Score, Rank: p.Start + i + 1}, true
		}
	}
	return rankcache.Standing{}, false
}

// covers reports whether the head holds all the requested rows.
func covers(top *rankcache.Top, start, limit int, order rankcache.Direction) bool {
	return order == rankcache.Descending && (start+limit <= len(top.Entries) || len(top.Entries) >= top.Members)
}

// decide returns where a board is read: mode is the operator's, localOpen whether its local
// copy may be read, hotHas whether a fresh top page of it is here. A super-hot board that is
// not open is read from the next tier. A local copy that has no super-hot mode any more (its
// room just left the file) is not read.
func decide(mode rooms.Mode, localOpen, hotHas bool) Tier {
	switch {
	case mode == rooms.ModeBlocked:
		return TierBlocked
	case mode == rooms.ModeSuperHot && localOpen:
		return TierLocal
	case hotHas:
		return TierHot
	}
	return TierRedis
}
