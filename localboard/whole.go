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
		s.Better, s.HasBetter = v.better(own.Score, q)
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
	from, to := v.rowsBetter(score, q)
	a := rankcache.Ahead{Members: to - from, Scores: -1}
	if q.Mode == rankcache.Dense && a.Members <= rankcache.MaxDense {
		a.Scores = v.distinct(from, to, q.Integers)
	}
	return a
}

// rowsBetter returns the rows with a better score: from the first to before the second.
func (v *view) rowsBetter(score float64, q *rankcache.PageQuery) (from, to int) {
	if q.Integers {
		score = rankcache.ShownScore(score)
	}
	switch {
	case q.Order == rankcache.Ascending:
		return v.rowsAbove(score, false), v.rows
	case q.Integers && score+1 > score: // else it has no fraction
		return 0, v.rowsAbove(score+1, false)
	}
	return 0, v.rowsAbove(score, true)
}

// distinct returns how many scores the rows have from index from to before to. It reads
// all of them.
func (k *ranking) distinct(from, to int, integers bool) (n int) {
	var last uint64 // no row's
	for from < to {
		keys := k.keysFrom(from)
		keys = keys[:min(len(keys), to-from)]
		for i := range keys {
			if k := &keys[i]; k.score != last {
				if last == 0 || !integers || !rankcache.SameScore(k.value(), sortKey{score: last}.value(), true) {
					n++
				}
				last = k.score
			}
		}
		from += len(keys)
	}
	return n
}

// better returns the nearest better score than the member's, which is on the board.
func (v *view) better(score float64, q *rankcache.PageQuery) (float64, bool) {
	from, to := v.rowsBetter(score, q)
	switch {
	case from == to:
		return 0, false
	case q.Order == rankcache.Ascending:
		return v.scoreOf(from), true
	}
	return v.scoreOf(to - 1), true
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
