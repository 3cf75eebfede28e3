package ledger

import (
	"context"
	"database/sql"
	"slices"

	"rankcache"
	"rankcache/wire"
)

// OrderKey names what an order has changed: an order id counts once for each board and member.
type OrderKey struct {
	Board         rankcache.BoardID
	Member, Order string
}

// BoardClass is the class of a board and its dimensions as [wire.AppendDims] writes them, "" for a board of no class.
type BoardClass struct{ Name, Dims string }

// changes reads rank_log as the books of others know its changes: by order, and by time.
type changes struct{ *database }

// Ordered returns the changes of orders, those that stand and those that Redis does not have any more and
// that may come again.
func (s changes) Ordered(ctx context.Context, keys []OrderKey) (applied, aside map[OrderKey][]*wire.Update, err error) {
	applied, aside = make(map[OrderKey][]*wire.Update), make(map[OrderKey][]*wire.Update)
	var board, member, order []string
	for _, k := range keys {
		board, member, order = append(board, string(k.Board)), append(member, k.Member), append(order, k.Order)
	}
	if len(keys) == 0 {
		return applied, aside, nil
	}
	err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		for from, to := range map[string]map[OrderKey][]*wire.Update{"rank_log WHERE": applied, "rank_lost WHERE " + isAside + " AND": aside} {
			q := t.d.query("SELECT ", logColumns, " FROM ", from, " ").among(texts("board", board), texts("member", member), texts("order_id", order))
			if err := q.each(t, updatesTo(func(u *wire.Update) error {
				k := OrderKey{u.Board, u.Member, u.OrderID}
				to[k] = append(to[k], u)
				return nil
			})); err != nil {
				return err
			}
		}
		return nil
	})
	return applied, aside, err
}

// OpsSince returns which operations have changed a member of boards at a time, in Unix milliseconds, or later.
func (s changes) OpsSince(ctx context.Context, boards []rankcache.BoardID, member string, at int64) (ops []wire.Op, err error) {
	if len(boards) == 0 {
		return nil, nil
	}
	names, members := make([]string, len(boards)), make([]string, len(boards))
	for i, b := range boards {
		names[i], members[i] = string(b), member
	}
	q := s.d.query("SELECT DISTINCT op FROM rank_log WHERE at >= ").arg(at).add(" AND ").among(texts("board", names), texts("member", members))
	err = s.each(ctx, q, func(row *sql.Rows) error {
		var text string
		err := row.Scan(&text)
		if err != nil {
			return err
		}
		op, err := wire.ParseUpdateOp(text)
		ops = append(ops, op)
		return err
	})
	return ops, err
}

// EachChange calls fn for each change of a time, in Unix milliseconds, with the class of its board, in no order.
// Changes that others have caused, hides, restores and what is forgotten are left out. Classes, if there are any, are the only ones.
func (s changes) EachChange(ctx context.Context, from, to int64, classes []string, fn func(*wire.Update, BoardClass) error) error {
	q := s.d.query("SELECT class, dims, ", logColumns, " FROM rank_log LEFT JOIN (SELECT board AS of_board, run AS of_run, class, dims FROM rank_board) b",
		" ON of_board = board AND of_run = run WHERE at >= ").arg(from).add(" AND at < ").arg(to).add(" AND op NOT IN ('trim', 'hide', 'restore', 'forget')")
	return s.each(ctx, q, func(row *sql.Rows) error {
		var class, dims sql.NullString
		u, err := scanUpdate(row, &class, &dims)
		if err != nil || len(classes) > 0 && !slices.Contains(classes, class.String) {
			return err
		}
		if class.String == "" {
			dims.String = ""
		}
		return fn(u, BoardClass{class.String, dims.String})
	})
}

// Active returns the boards of each class and dimensions that have changed since a time, in Unix milliseconds.
func (s changes) Active(ctx context.Context, since int64) (boards map[BoardClass][]rankcache.BoardID, err error) {
	boards = make(map[BoardClass][]rankcache.BoardID)
	err = s.each(ctx, s.d.query("SELECT DISTINCT board, class, dims FROM rank_board WHERE class <> '' AND at >= ").arg(since), func(row *sql.Rows) error {
		var board rankcache.BoardID
		var class BoardClass
		err := row.Scan((*string)(&board), &class.Name, &class.Dims)
		boards[class] = append(boards[class], board)
		return err
	})
	return boards, err
}
