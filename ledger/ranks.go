package ledger

import (
	"database/sql"
	"math"

	"rankcache"
)

// Ranks are the members of a board in order, best first, or the first places of its final.
// They are valid as long as their [Snapshot].
type Ranks struct {
	// Final is the board's final, if that is what is read, without rows; else nil.
	Final *Final

	t        *transaction
	table    string // with the condition for the board's rows
	args     []any
	order    rankcache.Direction
	integers bool
}

// Ranks returns the members in an order. With integers, scores with the same integer part
// are the same score ([rankcache.SameScore]).
func (v *Snapshot) Ranks(order rankcache.Direction, integers bool) *Ranks {
	return &Ranks{t: v.t, table: "rank_score WHERE score IS NOT NULL AND run >= ", args: []any{v.base, string(v.Board)}, order: order, integers: integers}
}

// FinalRanks returns the first places of the board's final, nil if it has none.
func (v *Snapshot) FinalRanks(order rankcache.Direction, integers bool) (*Ranks, error) {
	found, err := finals(v.t, finalOf(v.t.d, v.Board))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &Ranks{Final: found[0], t: v.t, table: "rank_final WHERE place > ", args: []any{0, string(v.Board)}, order: order, integers: integers}, nil
}

// of begins a query for rows of the board.
func (r *Ranks) of(selected string) *query {
	return r.t.d.query("SELECT ", selected, " FROM ", r.table).arg(r.args[0]).add(" AND board = ").arg(r.args[1])
}

// better is the comparison that a better score has with another.
func (r *Ranks) better() string {
	if r.order == rankcache.Ascending {
		return " < "
	}
	return " > "
}

// Rows returns up to limit rows from the 0-based start.
func (r *Ranks) Rows(start, limit int) (rows []rankcache.Entry, err error) {
	way := " DESC"
	if r.order == rankcache.Ascending {
		way = ""
	}
	q := r.of("member, score").add(" ORDER BY score", way, ", member", way, " LIMIT ").arg(limit).add(" OFFSET ").arg(start)
	err = r.t.entries(q, func(e rankcache.Entry) error { rows = append(rows, e); return nil })
	return rows, err
}

// Of returns a member's standing; its rank is 0 if it is not there.
func (r *Ranks) Of(member string) (s rankcache.Standing, err error) {
	s.Member = member
	found := false
	err = r.t.entries(r.of("member, score").add(" AND member = ").arg(member), func(e rankcache.Entry) error {
		s.Score, found = e.Score, true
		return nil
	})
	if err != nil || !found {
		return s, err
	}
	better, err := r.count(r.of("count(*)").add(" AND score", r.better()).arg(s.Score))
	if err != nil {
		return s, err
	}
	equal, err := r.count(r.of("count(*)").add(" AND score = ").arg(s.Score).add(" AND member", r.better()).arg(member))
	s.Rank = better + equal + 1
	return s, err
}

// Ahead counts the members with a better score.
func (r *Ranks) Ahead(score float64) (int, error) {
	return r.count(r.beyond("count(*)", score))
}

// Better returns the nearest better score, false if no member has one.
func (r *Ranks) Better(score float64) (better float64, ok bool, err error) {
	nearest := "MIN(score)"
	if r.order == rankcache.Ascending {
		nearest = "MAX(score)"
	}
	var found sql.NullFloat64
	err = r.beyond(nearest, score).each(r.t, func(row *sql.Rows) error { return row.Scan(&found) })
	return found.Float64, found.Valid, err
}

// beyond begins a query for rows with a better score.
func (r *Ranks) beyond(selected string, score float64) *query {
	q := r.of(selected)
	shown := math.Floor(score)
	switch {
	case !r.integers || shown+1 == shown: // it has no fraction
		return q.add(" AND score", r.better()).arg(score)
	case r.order == rankcache.Ascending:
		return q.add(" AND score < ").arg(shown)
	}
	return q.add(" AND score >= ").arg(shown + 1)
}

// Count counts the rows.
func (r *Ranks) Count() (int, error) { return r.count(r.of("count(*)")) }

func (r *Ranks) count(q *query) (n int, err error) {
	err = q.each(r.t, func(row *sql.Rows) error { return row.Scan(&n) })
	return n, err
}
