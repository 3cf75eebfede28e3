package ledger

import (
	"context"
	"database/sql"
	"time"

	"rankcache"
	"rankcache/wire"
)

// Keep tells how long rows are kept, by the time of their change. 0: for ever.
type Keep struct {
	Default time.Duration
	Classes map[string]time.Duration
}

func (k Keep) of(class string) time.Duration {
	if d, ok := k.Classes[class]; ok {
		return d
	}
	return k.Default
}

const (
	retainEvery  = 10 * time.Minute // the time between two looks for old rows
	removeAtOnce = 2000             // the most rows that one transaction removes
)

type retention struct{ *database }

// Retain removes rows of rank_log that are too old, the oldest of a board first, 2,000 a transaction, with the last one
// the board's scores; finals stay. It returns how many are removed.
func (s retention) Retain(ctx context.Context, keep Keep, now time.Time) (removed int, err error) {
	var after wire.Update // the last board and run that was looked at
	for {
		runs, err := s.runsAfter(ctx, after)
		if err != nil || len(runs) == 0 {
			return removed, err
		}
		for _, r := range runs {
			after = *r.last
			if keep.of(r.class) == 0 {
				continue
			}
			n, err := s.retainRun(ctx, r, now.Add(-keep.of(r.class)).UnixMilli())
			removed += n
			if err != nil {
				return removed, err
			}
		}
	}
}

// runsAfter returns the next rows of rank_board by board and run.
func (s retention) runsAfter(ctx context.Context, after wire.Update) (runs []*boardRun, err error) {
	q := s.d.query("SELECT board, run, class, tag, at FROM rank_board WHERE (board > ").arg(string(after.Board)).add(" OR board = ").arg(string(after.Board)).
		add(" AND run > ").arg(int64(after.Run)).add(") ORDER BY board, run LIMIT 500")
	err = s.each(ctx, q, func(row *sql.Rows) error {
		r := boardRun{last: &wire.Update{}}
		err := row.Scan((*string)(&r.last.Board), &r.last.Run, &r.class, &r.tag, &r.last.At)
		runs = append(runs, &r)
		return err
	})
	return runs, err
}

// retainRun removes the rows of one run before a time.
func (s retention) retainRun(ctx context.Context, r *boardRun, before int64) (removed int, err error) {
	for {
		n, whole := 0, false
		err := s.in(ctx, sql.LevelReadCommitted, func(t *transaction) (err error) {
			n, whole, err = removePage(t, r.last, before)
			return err
		})
		if err != nil {
			return removed, err
		}
		if removed += n; n == removeAtOnce {
			continue
		}
		if whole && r.tag != "" && r.last.At < before {
			return removed, s.forget(ctx, r.last)
		}
		return removed, nil
	}
}

// removePage removes the first rows of a run, as far as they are old. whole reports that none is left.
func removePage(t *transaction, of *wire.Update, before int64) (n int, whole bool, err error) {
	var last int64
	rows, young := 0, false
	run := func(q *query) *query {
		return q.add(" WHERE board = ").arg(string(of.Board)).add(" AND run = ").arg(int64(of.Run))
	}
	err = run(t.d.query("SELECT seq, at FROM rank_log")).add(" ORDER BY seq LIMIT ").arg(removeAtOnce).each(t, func(row *sql.Rows) error {
		var seq, at int64
		err := row.Scan(&seq, &at)
		rows++
		if young = young || at >= before; !young {
			last, n = seq, n+1
		}
		return err
	})
	if err != nil || n == 0 {
		return 0, rows == 0, err
	}
	if _, err := run(t.d.query("DELETE FROM rank_log")).add(" AND seq <= ").arg(last).exec(t); err != nil {
		return 0, false, err
	}
	_, err = run(t.d.query("UPDATE rank_board SET first_seq = ").arg(last + 1)).add(" AND first_seq <= ").arg(last).exec(t)
	return n, n == rows && n < removeAtOnce, err
}

// forget removes what the ledger has of a board's run beside rank_log, but for finals.
func (s retention) forget(ctx context.Context, of *wire.Update) error {
	for {
		left := false
		err := s.in(ctx, sql.LevelReadCommitted, func(t *transaction) (err error) {
			left, err = forgetPage(t, of.Board, of.Run)
			return err
		})
		if err != nil || !left {
			return err
		}
	}
}

func forgetPage(t *transaction, board rankcache.BoardID, run uint64) (left bool, err error) {
	var members []*wire.Update
	q := t.d.query("SELECT member FROM rank_score WHERE board = ").arg(string(board)).add(" AND run <= ").arg(int64(run)).add(" ORDER BY member LIMIT ").arg(removeAtOnce)
	err = q.each(t, func(row *sql.Rows) error {
		u := wire.Update{Board: board}
		err := row.Scan(&u.Member)
		members = append(members, &u)
		return err
	})
	if err != nil {
		return false, err
	}
	if len(members) > 0 {
		_, err := t.d.query("DELETE FROM rank_score WHERE ").among(memberColumns(members)...).exec(t)
		return true, err
	}
	for _, table := range []string{"rank_lost", "rank_board"} {
		if _, err := t.d.query("DELETE FROM ", table, " WHERE board = ").arg(string(board)).add(" AND run = ").arg(int64(run)).exec(t); err != nil {
			return false, err
		}
	}
	return false, nil
}
