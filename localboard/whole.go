package localboard

import "rankcache"

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
