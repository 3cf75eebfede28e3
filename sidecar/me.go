package sidecar

import (
	"context"

	"rankcache"
)

// Me returns the member's standing beside the page a, which is an answer to q, and its
// seq. dst is room for one standing; member holds one id.
//
// The page and the standing are two looks at a board that moves. Where the page
// itself (or the head that it is cut from) has the caller's row, that row is
// taken, so that nobody reads rank 12 in the page and rank 11 below it. Otherwise
// the standing is what it is now, and says its own seq.
func (r *Reader) Me(ctx context.Context, q Query, a *Answer, dst []rankcache.Standing, member []string) (rankcache.Standing, uint64, error) {
	at := &a.at
	if at.tier != TierLocal {
		if row, known := at.known(a, member[0]); known {
			return row, a.Seq, nil
		}
	}
	s, err := r.standings(ctx, q, at, dst, member)
	if err != nil {
		return rankcache.Standing{}, 0, err
	}
	if s.Seq == 0 || s.Seq != a.Seq { // published again between the two looks, or no way to tell
		if row, ok := rowOf(a.Page, member[0]); ok {
			return row, a.Seq, nil
		}
	}
	return s.Rows[len(s.Rows)-1], s.Seq, nil
}

// known answers from rows that are here already, without asking Redis: those of
// the page, those of the hot head that it was cut from, or the lack of them
// where they are the whole board.
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
