package ledger

import (
	"context"
	"database/sql"

	"rankcache"
)

// Members calls fn for each member, joined with its data, by their bytes; after [Snapshot.EndAtGap] in any order.
func (v *Snapshot) Members(fn func(rankcache.Entry) error) error {
	if v.end > 0 {
		return v.before(true, fn)
	}
	return v.t.entries(v.of("SELECT member, raw, data FROM rank_score").add(" AND raw IS NOT NULL ORDER BY member"), fn)
}

// Trimmed calls fn for each member that was trimmed, with the raw score that it had then.
func (v *Snapshot) Trimmed(fn func(rankcache.Entry) error) error {
	if v.end > 0 {
		return v.before(false, fn)
	}
	q := v.of("SELECT s.member, " + beforeTrim("COALESCE(l.raw, l.score)") + ", NULL FROM rank_score s").add(" AND raw IS NULL")
	return v.t.entries(q, fn)
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

// newest selects each member's last change before the end, of those with a condition: raw is null of absent ones.
func (v *Snapshot) newest(columns, more string) *query {
	q := v.of("SELECT member, " + columns + " FROM (SELECT member, op, CASE WHEN veil LIKE '% %' THEN NULL ELSE COALESCE(raw, score) END AS raw, data, veil, ROW_NUMBER() OVER (PARTITION BY member ORDER BY run DESC, seq DESC) AS newest FROM rank_log")
	return v.within(q).add(more, ") AS l WHERE newest = 1")
}

// older selects from members of which retention has removed the changes.
func (v *Snapshot) older(columns string) *query {
	return v.of("SELECT member, " + columns + " FROM rank_score s").add(" AND NOT EXISTS (SELECT 1 FROM rank_log l WHERE l.board = s.board AND l.member = s.member AND l.run >= ").arg(v.base).add(")")
}

// beforeTrim selects what a member s had in its last change l before its trim; nothing of a hidden one.
func beforeTrim(column string) string {
	return "(SELECT CASE WHEN l.veil LIKE '% %' THEN NULL ELSE " + column + " END FROM rank_log l WHERE l.board = s.board AND l.member = s.member AND l.op <> 'trim' ORDER BY l.run DESC, l.seq DESC LIMIT 1)"
}

// HasHidings reports whether a member of a board, or of an earlier life of it, is or was hidden.
func (s snapshots) HasHidings(ctx context.Context, board rankcache.BoardID) (has bool, err error) {
	q := s.d.query("SELECT 1 FROM rank_score WHERE board = ").arg(string(board)).add(" AND veil IS NOT NULL LIMIT 1")
	err = s.each(ctx, q, func(*sql.Rows) error { has = true; return nil })
	return has, err
}

// Hidings calls fn for each member that is or was hidden, in any order, with what Redis has of it: [wire.ParseHidden].
func (v *Snapshot) Hidings(fn func(member, veil string) error) error {
	each := func(q *query) error {
		return q.each(v.t, func(row *sql.Rows) error {
			var member string
			var veil sql.NullString
			if err := row.Scan(&member, &veil); err != nil || !veil.Valid {
				return err
			}
			return fn(member, veil.String)
		})
	}
	if v.end == 0 {
		return each(v.of("SELECT member, veil FROM rank_score").add(" AND veil IS NOT NULL"))
	}
	if err := each(v.newest("veil", "")); err != nil {
		return err
	}
	return each(v.older("veil"))
}
