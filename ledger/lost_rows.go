package ledger

import (
	"context"
	"database/sql"
	"time"

	"rankcache"
	"rankcache/wire"
)

// What became of a row of rank_lost, in its column state.
const (
	lostPending   = 0
	lostRedressed = 1 // its order id is in rank_log again
	lostGivenUp   = 2 // for a reason
)

// sameLossWithin is how far the moments may be apart at which rows of one loss are found.
const sameLossWithin = 10 * time.Minute

// lostRow is a change that Redis has lost, and what is known of it since.
type lostRow struct {
	*wire.Update
	id               int64
	lostAt, postedAt int64        // Unix milliseconds; 0: not posted
	again            *wire.Update // where its order id is in rank_log, or nil
	reason           string       // why it is not applied again
}

// lostRows is rank_lost.
type lostRows struct{ *database }

// Settled reports whether the ledger has a board as it is in Redis: nothing of it is on its
// way, and nothing that Redis has lost is still to be applied again.
func (s lostRows) Settled(ctx context.Context, board rankcache.BoardID, state rankcache.State) (settled bool, err error) {
	err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		var last rankcache.State
		var pending int
		q := t.d.query("SELECT run, seq FROM rank_board WHERE board = ").arg(string(board)).add(" ORDER BY run DESC LIMIT 1")
		err := q.each(t, func(row *sql.Rows) error { return row.Scan(&last.Run, &last.Seq) })
		if err != nil {
			return err
		}
		q = t.d.query("SELECT count(*) FROM rank_lost WHERE state = ").arg(lostPending).add(" AND board = ").arg(string(board))
		err = q.each(t, func(row *sql.Rows) error { return row.Scan(&pending) })
		settled = pending == 0 && last.Seq == state.Seq && last.Run <= state.Run // adding up a board makes a run without a change
		return err
	})
	return settled, err
}

// Pending returns how many changes that Redis has lost are to be applied again.
func (s lostRows) Pending(ctx context.Context) (n int, err error) {
	q := s.d.query("SELECT count(*) FROM rank_lost WHERE state = ").arg(lostPending)
	err = s.db.QueryRowContext(ctx, q.text.String(), q.args...).Scan(&n)
	return n, err
}

// takeTurn reports whether the caller is the one of all ledgers that looks for losses now,
// and when the next turn begins.
func (s lostRows) takeTurn(ctx context.Context, now, next time.Time) (mine bool, err error) {
	err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		n, err := t.d.query("UPDATE rank_offset SET next = ").arg(next.UnixMilli()).add(" WHERE topic = '' AND part = 0 AND next <= ").arg(now.UnixMilli()).exec(t)
		mine = n == 1
		return err
	})
	return mine, err
}

// orderAgain joins the row of rank_log, as l, that has the order id of a row of rank_lost, as x.
const orderAgain = "l.board = x.board AND l.member = x.member AND l.order_id = x.order_id AND l.op = x.op"

// pending returns rows that are to be decided, by board in the sequence in which they were applied.
func (s lostRows) pending(t *transaction, n int) (rows []*lostRow, err error) {
	q := t.d.query("SELECT x.id, x.lost_at, COALESCE(x.posted_at, 0), COALESCE(l.run, 0), COALESCE(l.seq, 0), ",
		"x.board, x.run, x.seq, x.member, x.order_id, x.op, x.delta, x.score, x.raw, x.sum, x.members, x.at",
		" FROM rank_lost x LEFT JOIN rank_log l ON ", orderAgain, " WHERE x.state = ").arg(lostPending).add(" ORDER BY x.board, x.run, x.seq LIMIT ").arg(n)
	err = q.each(t, func(row *sql.Rows) error {
		r := &lostRow{again: &wire.Update{}}
		u, err := scanUpdate(row, &r.id, &r.lostAt, &r.postedAt, &r.again.Run, &r.again.Seq)
		if r.Update = u; r.again.Run == 0 {
			r.again = nil
		}
		rows = append(rows, r)
		return err
	})
	return rows, err
}

// touched returns what was applied to members of a board since rows of it were lost, without
// what was lost itself: sets and deletes, and of the members of others of the rows also increments.
func (s lostRows) touched(t *transaction, rows []*lostRow) (since []*wire.Update, err error) {
	board, earliest, members := string(rows[0].Board), rows[0].lostAt, []string{""}
	for _, r := range rows {
		earliest = min(earliest, r.lostAt)
		if r.Op != wire.OpIncr {
			members = append(members, r.Member)
		}
	}
	var first sql.NullInt64
	q := t.d.query("SELECT MIN(seq) FROM rank_lost WHERE board = ").arg(board).add(" AND lost_at >= ").arg(earliest - sameLossWithin.Milliseconds())
	if err := q.each(t, func(row *sql.Rows) error { return row.Scan(&first) }); err != nil {
		return nil, err
	}
	q = t.d.query("SELECT run FROM rank_board WHERE board = ").arg(board)
	where := t.d.query("SELECT ", logColumns, " FROM rank_log l WHERE l.board = ").arg(board).add(" AND (1 = 0")
	err = q.each(t, func(row *sql.Rows) error {
		var run int64
		err := row.Scan(&run)
		if where.add(" OR l.run = ").arg(run); uint64(run) <= rows[0].Run { // #nosec G115 -- stored from uint64
			where.add(" AND l.seq >= ").arg(first.Int64)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	where.add(") AND (l.op IN ('set', 'delete') OR ").among(texts("member", members)).add(") AND NOT EXISTS (SELECT 1 FROM rank_lost x WHERE ", orderAgain, ")")
	err = where.each(t, func(row *sql.Rows) error {
		u, err := scanUpdate(row)
		since = append(since, u)
		return err
	})
	return since, err
}

// posted notes when rows were posted.
func (s lostRows) posted(ctx context.Context, rows []*lostRow, at int64) error {
	return s.set(ctx, rows, func(t *transaction, of column) error {
		_, err := t.d.query("UPDATE rank_lost SET posted_at = ").arg(at).add(" WHERE ").among(of).exec(t)
		return err
	})
}

// settle notes that the order ids of rows are in rank_log again.
func (s lostRows) settle(ctx context.Context, rows []*lostRow) error {
	return s.set(ctx, rows, func(t *transaction, of column) error {
		_, err := t.d.query("UPDATE rank_lost SET state = ").arg(lostRedressed).
			add(", redressed_seq = (SELECT l.seq FROM rank_log l WHERE l.board = rank_lost.board AND l.member = rank_lost.member AND l.order_id = rank_lost.order_id AND l.op = rank_lost.op) WHERE ").
			among(of).exec(t)
		return err
	})
}

// report notes why rows are not applied again, and what their members have instead.
func (s lostRows) report(ctx context.Context, rows []*lostRow, reason string) error {
	return s.set(ctx, rows, func(t *transaction, of column) error {
		_, err := t.d.query("UPDATE rank_lost SET state = ").arg(lostGivenUp).add(", reason = ").arg(reason).
			add(", now_score = (SELECT s.score FROM rank_score s WHERE s.board = rank_lost.board AND s.member = rank_lost.member) WHERE ").among(of).exec(t)
		return err
	})
}

// set changes rows in a transaction of its own.
func (s lostRows) set(ctx context.Context, rows []*lostRow, change func(*transaction, column) error) error {
	if len(rows) == 0 {
		return nil
	}
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.id
	}
	return s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error { return change(t, ints("id", ids)) })
}
