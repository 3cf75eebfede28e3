package localboard

import (
	"cmp"
	"math"
	"slices"

	"rankcache"
)

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
		a.Scores = v.distinct(from, to, q.Form)
	}
	return a
}

// aheadOfAll is ahead for each row, of which those with rank 0 have nothing ahead. A row that
// is ahead of several is looked at once.
func (v *view) aheadOfAll(rows []rankcache.Standing, q *rankcache.PageQuery) []rankcache.Ahead {
	all := make([]rankcache.Ahead, len(rows))
	best := make([]int, len(rows)) // indexes in rows, best first
	for i := range best {
		best[i] = i
	}
	slices.SortFunc(best, func(i, j int) int { return cmp.Compare(rows[i].Rank, rows[j].Rank) })
	counted, scores := 0, 0 // of the rows that are ahead
	for _, i := range best {
		if rows[i].Rank == 0 {
			continue
		}
		from, to := v.rowsBetter(rows[i].Score, q)
		all[i] = rankcache.Ahead{Members: to - from, Scores: -1}
		if q.Mode != rankcache.Dense || to-from > rankcache.MaxDense {
			continue
		}
		if q.Order == rankcache.Ascending {
			scores += v.distinct(from, to-counted, q.Form)
		} else {
			scores += v.distinct(counted, to, q.Form)
		}
		counted = to - from
		all[i].Scores = scores
	}
	return all
}

// rowsBetter returns the rows with a better score: from the first to before the second.
func (v *view) rowsBetter(score float64, q *rankcache.PageQuery) (from, to int) {
	integers := q.Form == rankcache.ScoreInteger
	if integers {
		score = math.Floor(score)
	}
	switch {
	case q.Order == rankcache.Ascending:
		return v.rowsAbove(score, false), v.rows
	case integers && score+1 > score: // else it has no fraction
		return 0, v.rowsAbove(score+1, false)
	}
	return 0, v.rowsAbove(score, true)
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
