package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"rankcache"
)

// verdict is what is known of the rows of rank_lost.
type verdict struct {
	pending int // may come again
	wrong   int // of these, those that have not come in time, and that Redis has
	unknown int // likewise, and that Redis may have forgotten
	lost    int // found to be lost now
}

// judge notes which changes have come again, and which are lost: those that have not come in time, and of which Redis
// does not have the order id. Without Redis none is. Several callers find each once.
func (s *Store) judge(ctx context.Context, now time.Time, asked Redis) (v verdict, err error) {
	err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		_, err := t.d.query("UPDATE rank_lost SET state = ").arg(lostAgain).add(" WHERE state <> ").arg(lostAgain).add(" AND lost_at > ").
			arg(now.Add(-looksFor).UnixMilli()).add(" AND EXISTS (SELECT 1 FROM rank_log l WHERE l.board = rank_lost.board AND l.member = rank_lost.member",
			" AND l.order_id = rank_lost.order_id AND l.op = rank_lost.op)").exec(t)
		return err
	})
	late := make(map[rankcache.BoardID]*lateRows)
	if err == nil && asked != nil {
		late, err = s.late(ctx, now.Add(-comesWithin))
	}
	for board, of := range late {
		if err == nil {
			err = s.judgeLate(ctx, board, of, asked, &v)
		}
	}
	if err == nil {
		q := s.d.query("SELECT count(*), count(CASE WHEN state = ").arg(lostWrong).add(" THEN 1 END), count(CASE WHEN state = ").arg(lostUnknown).
			add(" THEN 1 END) FROM rank_lost WHERE ", isAside)
		err = s.db.QueryRowContext(ctx, q.text.String(), q.args...).Scan(&v.pending, &v.wrong, &v.unknown)
	}
	return v, err
}

// lateRows are the rows of a board that have not come again in time.
type lateRows struct {
	ids    []int64
	orders []string // "": none
	at     []int64
}

// late returns the first rows that were set aside before a time.
func (s *Store) late(ctx context.Context, before time.Time) (map[rankcache.BoardID]*lateRows, error) {
	late := make(map[rankcache.BoardID]*lateRows)
	q := s.d.query("SELECT id, board, COALESCE(order_id, ''), at FROM rank_lost WHERE state = ").arg(lostAside).
		add(" AND lost_at <= ").arg(before.UnixMilli()).add(" ORDER BY id LIMIT ").arg(judgedAtOnce)
	return late, s.each(ctx, q, func(row *sql.Rows) error {
		var id, at int64
		var board rankcache.BoardID
		var order string
		err := row.Scan(&id, (*string)(&board), &order, &at)
		if late[board] == nil {
			late[board] = &lateRows{}
		}
		of := late[board]
		of.ids, of.orders, of.at = append(of.ids, id), append(of.orders, order), append(of.at, at)
		return err
	})
}

// judgeLate notes those of a board's rows as lost that Redis does not have, and those that it has as wrong, for good.
// Before that Redis is asked where the board is, with which they may stand.
func (s *Store) judgeLate(ctx context.Context, board rankcache.BoardID, of *lateRows, asked Redis, v *verdict) error {
	err := s.Locate(ctx, board, asked)
	known, since := []bool(nil), int64(0)
	if err == nil {
		known, since, err = asked.Orders(ctx, board, of.orders)
	}
	if err != nil {
		return fmt.Errorf("asking Redis for board %s and its order ids: %w", board, err)
	}
	found := make(map[int][]int64)
	for i, id := range of.ids {
		state := lostGone
		switch {
		case of.orders[i] == "":
		case known[i]:
			state = lostWrong
		case of.at[i] < since:
			state = lostUnknown
		}
		found[state] = append(found[state], id)
	}
	return s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		for state, ids := range found {
			if len(ids) == 0 {
				continue
			}
			n, err := t.d.query("UPDATE rank_lost SET state = ").arg(state).
				add(", now_score = (SELECT s.score FROM rank_score s WHERE s.board = rank_lost.board AND s.member = rank_lost.member) WHERE state = ").arg(lostAside).
				add(" AND ").among(ints("id", ids)).exec(t)
			if err != nil {
				return err
			}
			if state == lostGone {
				v.lost += int(n)
			}
		}
		return nil
	})
}
