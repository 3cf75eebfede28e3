package sidecar

import (
	"time"

	"rankcache"
)

// Limits of one answer.
const (
	// MaxAround is the most neighbours on either side of a member.
	MaxAround = 100
	// maxStart is the deepest first row, 0-based.
	maxStart = 100_000_000
)

// place is where one board is read, found once per request.
type place struct {
	tier  Tier
	board Board          // set for TierLocal
	top   *rankcache.Top // set for TierLocal and TierHot
	hotAt time.Time      // CurrentAt of a hot top
}

// find decides where q is read. A local board without a published head counts as
// not open. count says whether the hot tier is told of the read.
func (r *Reader) find(q *Query, count bool) (place, error) {
	mode := r.tiers().Mode(q.Board, q.Room)
	at := place{}
	if mode == rankcache.ModeSuperHot && r.boards != nil {
		if b, ok := r.boards.Get(q.Board); ok {
			at.board, at.top = b, b.Top()
		}
	}
	local, hot := at.top != nil, false
	if mode != rankcache.ModeBlocked && r.hot != nil {
		if count {
			r.Count(q.Board)
		}
		if !local {
			if at.top, at.hotAt, hot = r.hot.Top(q.Board); !hot {
				at.top = nil
			}
		}
	}
	if at.tier = decide(mode, local, hot); at.tier == TierBlocked {
		return place{}, ErrBlocked
	}
	return at, nil
}

// Count tells the hot tier of a read of the board.
func (r *Reader) Count(id rankcache.BoardID) {
	if r.hot != nil {
		r.hot.Count(id)
	}
}

// covers reports whether the head holds all the rows that were asked for.
func covers(top *rankcache.Top, start, limit int, order rankcache.Order) bool {
	return order == rankcache.Desc && (start+limit <= len(top.Entries) || len(top.Entries) >= top.Members)
}

// head returns the rows of the place's top, which covers them.
func (at *place) head(start, limit int) Answer {
	top := at.top
	from := min(start, len(top.Entries))
	to := min(start+limit, len(top.Entries))
	a := Answer{Source: SourceHot, CurrentAt: at.hotAt, at: *at, top: top, Page: rankcache.Page{
		Stamp:   rankcache.Stamp{Seq: top.Seq, Members: top.Members, At: top.PublishedAt},
		Start:   start,
		Entries: top.Entries[from:to:to],
	}}
	if at.tier == TierLocal {
		a.Source, a.CurrentAt = SourceLocal, at.board.CurrentAt()
	}
	return a
}
