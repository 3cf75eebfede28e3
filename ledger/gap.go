package ledger

import (
	"database/sql"

	"rankcache"
)

// EndAtGap has the snapshot end before the first missing change, if the next is no older than since, in Unix
// milliseconds: Redis lost it with its writer. What is behind has effect without order ids, and would count twice; the
// command topic has it.
func (v *Snapshot) EndAtGap(since int64) error {
	missing, err := v.Missing(rankcache.State{})
	if err != nil || missing == 0 {
		return err
	}
	late, err := v.seq(v.own("SELECT MIN(seq) FROM rank_log").add(" AND at >= ").arg(since))
	if err != nil || late == 0 {
		return err
	}
	q := v.own("SELECT MIN(seq) FROM (SELECT seq, at, LAG(seq) OVER (ORDER BY seq) AS before_it FROM rank_log").add(" AND seq >= ").arg(late - 1).
		add(") AS l WHERE at >= ").arg(since).add(" AND (before_it <> seq - 1 OR before_it IS NULL AND seq > ").arg(int64(v.First)).add(")") // #nosec G115 -- below 2^63
	end, err := v.seq(q)
	if err != nil || end == 0 {
		return err
	}
	last, err := v.seq(v.own("SELECT MAX(seq) FROM rank_log").add(" AND seq < ").arg(end))
	if err == nil && last > 0 {
		v.State.Seq, v.end = uint64(last), uint64(end) // #nosec G115 -- stored from uint64
	}
	return err
}

// seq returns the one number that a query selects, 0 for none.
func (v *Snapshot) seq(q *query) (int64, error) {
	var n sql.NullInt64
	err := q.each(v.t, func(row *sql.Rows) error { return row.Scan(&n) })
	return n.Int64, err
}

// own selects from the rows of the board's life.
func (v *Snapshot) own(selected string) *query {
	return v.t.d.query(selected, " WHERE board = ").arg(string(v.Board)).add(" AND run >= ").arg(v.base)
}

// newest selects each member's last change before the end, of those with a condition: raw is null of absent ones.
func (v *Snapshot) newest(columns, more string) *query {
	q := v.own("SELECT member, " + columns + " FROM (SELECT member, op, CASE WHEN veil LIKE '% %' THEN NULL ELSE COALESCE(raw, score) END AS raw, data, veil, ROW_NUMBER() OVER (PARTITION BY member ORDER BY run DESC, seq DESC) AS newest FROM rank_log")
	return v.within(q).add(more, ") AS l WHERE newest = 1")
}

// older selects from members of which retention has removed the changes.
func (v *Snapshot) older(columns string) *query {
	return v.of("SELECT member, " + columns + " FROM rank_score s").add(" AND NOT EXISTS (SELECT 1 FROM rank_log l WHERE l.board = s.board AND l.member = s.member AND l.run >= ").arg(v.base).add(")")
}

// before calls fn with what members had before the end: those that are on the board, or those that were trimmed.
func (v *Snapshot) before(onBoard bool, fn func(rankcache.Entry) error) error {
	last := make(map[string]string) // op of each member's last change
	err := v.newest("op", "").each(v.t, func(row *sql.Rows) error {
		var member, op string
		err := row.Scan(&member, &op)
		last[member] = op
		return err
	})
	if err != nil {
		return err
	}
	err = v.t.entries(v.newest("raw, data", " AND op <> 'trim'"), func(e rankcache.Entry) error {
		member, _ := rankcache.SplitData(e.Member)
		if (last[member] == "trim") == onBoard {
			return nil
		}
		if !onBoard { // with its data it is gone
			e.Member = member
		}
		return fn(e)
	})
	if err != nil || !onBoard {
		return err
	}
	return v.t.entries(v.older("raw, data"), fn)
}
