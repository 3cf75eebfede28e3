package ledger

import (
	"context"
	"database/sql"
	"time"

	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/internal/tick"
)

// What is known of a row of rank_lost, in its column state.
const (
	lostAside = 0 // its order id may come again
	lostAgain = 1 // it has; or the row is a trim, which goes with the change that caused it
	lostGone  = 2 // it has not come again in time
)

const (
	// judgeEvery is the time between two looks for what has come again.
	judgeEvery = 2 * time.Second
	// comesWithin is how long what was set aside may take to come again, and looksFor how long it is
	// looked for: a rewind may take longer.
	comesWithin, looksFor = 10 * time.Minute, 24 * time.Hour
)

// lostRows is rank_lost.
type lostRows struct{ *database }

// judge reports changes that were set aside and don't come again as lost, until ctx ends.
func (l *Ledger) judge(ctx context.Context) {
	limit := rate.Sometimes{Interval: 10 * logEvery}
	for range tick.NowAndEvery(ctx, judgeEvery) {
		lost, pending, err := l.opts.Store.judge(ctx, time.Now())
		if ctx.Err() != nil {
			return
		}
		l.wrote("rank_lost", err)
		if err != nil {
			limit.Do(func() {
				l.log.Warn("it is not known which changes Redis has lost: the next look is in two seconds", "err", err)
			})
			continue
		}
		l.metrics.pending.Set(float64(pending))
		l.metrics.lost.Add(float64(lost))
		l.note(func(s *Status) { s.Lost, s.Pending = s.Lost+lost, pending })
		if lost > 0 {
			l.log.Error("Redis has lost changes, and they were not applied again: they are in rank_lost with state 2", "changes", lost)
		}
	}
}

// judge notes which changes have come again, and returns how many it has found to be lost and how
// many may come yet. Several callers find each once.
func (s lostRows) judge(ctx context.Context, now time.Time) (lost int64, pending int, err error) {
	err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		_, err := t.d.query("UPDATE rank_lost SET state = ").arg(lostAgain).add(" WHERE state IN (").arg(lostAside).add(", ").arg(lostGone).add(") AND lost_at > ").
			arg(now.Add(-looksFor).UnixMilli()).add(" AND EXISTS (SELECT 1 FROM rank_log l WHERE l.board = rank_lost.board AND l.member = rank_lost.member",
			" AND l.order_id = rank_lost.order_id AND l.op = rank_lost.op)").exec(t)
		if err != nil {
			return err
		}
		lost, err = t.d.query("UPDATE rank_lost SET state = ").arg(lostGone).
			add(", now_score = (SELECT s.score FROM rank_score s WHERE s.board = rank_lost.board AND s.member = rank_lost.member) WHERE state = ").arg(lostAside).
			add(" AND lost_at <= ").arg(now.Add(-comesWithin).UnixMilli()).exec(t)
		return err
	})
	if err == nil {
		q := s.d.query("SELECT count(*) FROM rank_lost WHERE state = ").arg(lostAside)
		err = s.db.QueryRowContext(ctx, q.text.String(), q.args...).Scan(&pending)
	}
	return lost, pending, err
}

// Settled reports whether the ledger has a board as it is in Redis: nothing of it is on its
// way, and nothing that Redis has lost may come again.
func (s lostRows) Settled(ctx context.Context, board rankcache.BoardID, state rankcache.State) (settled bool, err error) {
	err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		var last rankcache.State
		var pending int
		q := t.d.query("SELECT run, seq FROM rank_board WHERE board = ").arg(string(board)).add(" ORDER BY run DESC LIMIT 1")
		err := q.each(t, func(row *sql.Rows) error { return row.Scan(&last.Run, &last.Seq) })
		if err != nil {
			return err
		}
		q = t.d.query("SELECT count(*) FROM rank_lost WHERE state = ").arg(lostAside).add(" AND board = ").arg(string(board))
		err = q.each(t, func(row *sql.Rows) error { return row.Scan(&pending) })
		settled = pending == 0 && last.Seq == state.Seq && last.Run <= state.Run // a board may get a run without a change
		return err
	})
	return settled, err
}
