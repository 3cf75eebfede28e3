package localboard

import (
	"slices"
	"sort"

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
		s.Better, s.HasBetter = v.better(own, q.Order)
	}
	return s
}

// better returns the nearest better score than the member's, which is on the board. The
// row before it has that, unless both tie.
func (v *view) better(own rankcache.Standing, direction rankcache.Direction) (float64, bool) {
	score := func(row int) float64 {
		if direction == rankcache.Ascending {
			row = v.rows - 1 - row
		}
		return v.scoreOf(row)
	}
	row := own.Rank - 1
	if row > 0 && score(row-1) == own.Score {
		row = sort.Search(row-1, func(i int) bool { return score(i) == own.Score })
	}
	if row == 0 {
		return 0, false
	}
	return score(row - 1), true
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
