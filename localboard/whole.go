package localboard

import (
	"cmp"
	"fmt"
	"slices"

	"rankcache"
)

// errDeep reports that more members have a better score than dense ranks are counted over.
var errDeep = fmt.Errorf("%w: dense ranks are counted over the %d best members, and more have a better score", rankcache.ErrRankMode, rankcache.MaxDense)

// surround sets what stands next to a member whose standing is set.
func (v *view) surround(own *rankcache.Own, q *rankcache.Query, stamp rankcache.Stamp) {
	own.Stamp, own.Data = stamp, v.data
	if own.Rank == 0 {
		return
	}
	if q.Around > 0 {
		n := min(q.Neighbours(), v.rows)
		own.First = max(0, own.Rank-1-n)
		own.Neighbours = v.rowsFrom(own.First, own.Rank+n-own.First, q.Order)
	}
	if q.Gap {
		own.Better, own.HasBetter = v.better(own.Score, q)
	}
}

// count sets what is ahead of the first row and of the members that are on the board. Distinct scores are counted for
// dense ranks alone, over [rankcache.MaxDense] rows at most, each row once.
func (v *view) count(q *rankcache.Query, a *rankcache.Answer) {
	c := counter{view: v, q: q}
	if len(a.Entries) > 0 {
		c.count(a.Entries[0].Score, &a.Ahead, &a.Err)
	}
	best := make([]*rankcache.Own, 0, len(a.Own))
	for i := range a.Own {
		if a.Own[i].Rank > 0 {
			best = append(best, &a.Own[i])
		}
	}
	slices.SortFunc(best, func(x, y *rankcache.Own) int { return cmp.Compare(x.Rank, y.Rank) })
	c = counter{view: v, q: q}
	for _, own := range best {
		score := own.Score
		if len(own.Neighbours) > 0 {
			score = own.Neighbours[0].Score
		}
		c.count(score, &own.Ahead, &own.Err)
	}
}

// counter counts what is ahead of some scores, the best first.
type counter struct {
	*view
	q            *rankcache.Query
	rows, scores int // that were ahead of the score before
}

func (c *counter) count(score float64, ahead *rankcache.Ahead, err *error) {
	from, to := c.rowsBetter(score, c.q)
	*ahead = rankcache.Ahead{Members: to - from, Scores: -1}
	if c.q.Mode != rankcache.Dense {
		return
	}
	if to-from > rankcache.MaxDense {
		*err = errDeep
		return
	}
	if c.q.Order == rankcache.Ascending {
		c.scores += c.distinct(from, to-c.rows, c.q.Form)
	} else {
		c.scores += c.distinct(c.rows, to, c.q.Form)
	}
	c.rows, ahead.Scores = to-from, c.scores
}

// rowsBetter returns the rows with a better score: from the first to before the second.
func (v *view) rowsBetter(score float64, q *rankcache.Query) (from, to int) {
	bound, included := q.Form.Better(score, q.Order)
	if q.Order == rankcache.Ascending {
		return v.rowsAbove(bound, false), v.rows
	}
	return 0, v.rowsAbove(bound, !included)
}

// better returns the nearest better score than the member's, which is on the board.
func (v *view) better(score float64, q *rankcache.Query) (float64, bool) {
	from, to := v.rowsBetter(score, q)
	switch {
	case from == to:
		return 0, false
	case q.Order == rankcache.Ascending:
		return v.scoreOf(from), true
	}
	return v.scoreOf(to - 1), true
}
