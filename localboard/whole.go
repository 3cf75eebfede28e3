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
