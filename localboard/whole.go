package localboard

import (
	"slices"

	"rankcache"
)

// WholePage answers q, all of one moment, and returns the published head of that moment;
// nil before the first Publish. The rows are as those of [Board.Page]. q.Board is not
// looked at.
func (b *Board) WholePage(q rankcache.PageQuery) (rankcache.WholePage, *rankcache.Top) {
	own := [1]rankcache.Standing{{Member: q.Member}}
	v, pinned := b.standings(own[:], q.Order)
	if v == nil {
		return rankcache.WholePage{}, nil
	}
	defer pinned.release()
	return rankcache.WholePage{Page: v.page(q.Start, q.Limit, q.Order), Own: v.surroundings(own[0], &q)}, v.top
}

func (v *view) surroundings(own rankcache.Standing, q *rankcache.PageQuery) rankcache.Surroundings {
	s := rankcache.Surroundings{Standing: own}
	if own.Rank == 0 {
		return s
	}
	if q.Around >= 0 {
		n := min(q.Around, v.rows)
		s.First = max(0, own.Rank-1-n)
		s.Neighbours = v.page(s.First, own.Rank+n-s.First, q.Order).Entries
	}
	if q.Gap {
		s.Better, s.HasBetter = v.better(own.Score, q.Order)
	}
	return s
}

// better returns the nearest better score than the member's, which is on the board.
func (v *view) better(score float64, direction rankcache.Direction) (float64, bool) {
	row := v.rowsAbove(score, true) - 1
	if direction == rankcache.Ascending {
		row = v.rowsAbove(score, false)
	}
	if row < 0 || row == v.rows {
		return 0, false
	}
	return v.scoreOf(row), true
}

// scoreOf returns the score of a row by its index, best first.
func (k *ranking) scoreOf(row int) float64 {
	i, found := slices.BinarySearch(k.starts, uint32(row))
	if !found {
		i--
	}
	in := k.children[i]
	l, at := in.locate(row - int(k.starts[i]))
	return in.leaves[l].keys[at].value()
}
