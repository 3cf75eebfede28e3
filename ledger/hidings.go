package ledger

import (
	"context"
	"database/sql"

	"rankcache"
)

// HasHidings reports whether a member of a board, or of an earlier life of it, is or was hidden.
func (s snapshots) HasHidings(ctx context.Context, board rankcache.BoardID) (has bool, err error) {
	err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		return t.d.query("SELECT 1 FROM rank_score WHERE board = ").arg(string(board)).add(" AND veil IS NOT NULL LIMIT 1").
			each(t, func(*sql.Rows) error { has = true; return nil })
	})
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
