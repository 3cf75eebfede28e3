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
	w := rankcache.WholePage{Page: v.page(q.Start, q.Limit, q.Order), Own: v.surroundings(own[0], &q)}
	if q.Ranked() && len(w.Entries) > 0 {
		w.Ahead = v.ahead(w.Entries[0].Score, &q)
	}
	return w, v.top
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
	if q.Ranked() {
		first := own.Score
		if len(s.Neighbours) > 0 {
			first = s.Neighbours[0].Score
		}
		s.Ahead = v.ahead(first, q)
	}
	return s
}

// ahead counts what is better than a score. Distinct scores are counted for dense ranks
// alone, over at most [rankcache.MaxDense] rows.
func (v *view) ahead(score float64, q *rankcache.PageQuery) rankcache.Ahead {
	from, to := 0, v.rowsAbove(score, true)
	if q.Order == rankcache.Ascending {
		from, to = v.rowsAbove(score, false), v.rows
	}
	a := rankcache.Ahead{Members: to - from, Scores: -1}
	if q.Mode == rankcache.Dense && a.Members <= rankcache.MaxDense {
		a.Scores = v.distinct(from, to)
	}
	return a
}

// distinct returns how many scores the rows have from index from to before to. It reads
// all of them.
func (k *ranking) distinct(from, to int) (n int) {
	var last uint64 // no row's
	for from < to {
		keys := k.keysFrom(from)
		keys = keys[:min(len(keys), to-from)]
		for i := range keys {
			if keys[i].score != last {
				last = keys[i].score
				n++
			}
		}
		from += len(keys)
	}
	return n
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
func (k *ranking) scoreOf(row int) float64 { return k.keysFrom(row)[0].value() }

// keysFrom returns the sort keys of a row by its index, and of those behind it in its leaf.
func (k *ranking) keysFrom(row int) []sortKey {
	i, found := slices.BinarySearch(k.starts, uint32(row))
	if !found {
		i--
	}
	in := k.children[i]
	l, at := in.locate(row - int(k.starts[i]))
	return in.leaves[l].keys[at:in.leaves[l].n]
}
