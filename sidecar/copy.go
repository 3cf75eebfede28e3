package sidecar

import (
	"time"

	"rankcache"
	"rankcache/rooms"
)

// Copy is the local copy of one board. It is for protocols that never have the
// Reader ask Redis.
type Copy struct {
	Source Source // SourceRedis: nothing is kept here
	Board  Board  // of SourceLocal
	// Top is not older than CurrentAt, when it was last known to equal Redis.
	Top       *rankcache.Top
	CurrentAt time.Time
}

// Copy returns the local copy of q's board, ignoring q's bounds, or [ErrBlocked]. It
// does not count as a read; see [Reader.Count].
func (p *places) Copy(q *Query) (Copy, error) {
	var at place
	err := p.find(q, false, &at)
	switch {
	case err != nil:
		return Copy{}, err
	case at.tier == TierHot:
		return Copy{Source: SourceHot, Top: at.top, CurrentAt: at.hotAt}, nil
	case at.tier != TierLocal:
		return Copy{Source: SourceRedis}, nil
	}
	c := Copy{Source: SourceLocal, Board: at.board, CurrentAt: at.board.CurrentAt()}
	if c.Top = at.board.Top(); c.Top == nil { // again, after CurrentAt was read: it may have been emptied
		return Copy{Source: SourceRedis}, nil
	}
	return c, nil
}

// CurrentAt returns the source of q's local copy and when that was last known to equal
// Redis; [SourceRedis] if nothing is kept here.
func (p *places) CurrentAt(q *Query) (Source, time.Time) {
	if board, _ := p.local(q); board != nil {
		if at := board.CurrentAt(); !board.Stamp().At.IsZero() { // else it may have been emptied
			return SourceLocal, at
		}
	}
	c, err := p.Copy(q)
	if err != nil {
		return SourceRedis, time.Time{}
	}
	return c.Source, c.CurrentAt
}

// Keeps reports whether the whole board is kept open here, be it bypassed or not.
func (p *places) Keeps(id rankcache.BoardID) bool {
	if p.tiers().Mode(id, "") != rooms.ModeSuperHot {
		return false
	}
	_, top := p.whole(id)
	return top != nil
}
