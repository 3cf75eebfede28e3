package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/internal/tick"
	"rankcache/wire"
)

// What is known of a row of rank_lost, in its column state.
const (
	lostAside   = 0 // its order id may come again
	lostAgain   = 1 // it has; or the row is a trim, which goes with the change that caused it
	lostGone    = 2 // it has not come again in time
	lostWrong   = 3 // as lostAside, and Redis had its order id after that time: once it is forgotten there, nobody could tell
	lostUnknown = 4 // as lostAside, and nobody can tell: Redis was asked when it may have forgotten its order id
)

const (
	// judgeEvery is the time between two looks for what has come again.
	judgeEvery = 2 * time.Second
	// comesWithin is how long what was set aside may take to come again, and looksFor how long it is
	// looked for: a rewind may take longer.
	comesWithin, looksFor = 10 * time.Minute, 24 * time.Hour
	// judgedAtOnce is of how many rows Redis is asked in a look.
	judgedAtOnce = 2000
)

// isAside is the condition of rows that may come again.
var isAside = fmt.Sprintf("state IN (%d, %d, %d)", lostAside, lostWrong, lostUnknown)

// lostRows is rank_lost.
type lostRows struct{ *database }

// Redis is what a ledger asks of Redis.
type Redis interface {
	// Orders reports of each order id whether Redis has it on the board. It may have forgotten those of changes of before
	// since, in Unix milliseconds.
	Orders(ctx context.Context, board rankcache.BoardID, ids []string) (known []bool, since int64, err error)
	// Meta returns what Redis has of a board beside its members, and whether it has it.
	Meta(ctx context.Context, board rankcache.BoardID) (meta wire.Meta, found bool, err error)
	// Home returns the state of a board, none if Redis does not have it, and the era of its server, both of one moment.
	Home(ctx context.Context, board rankcache.BoardID) (state rankcache.State, era string, err error)
}

// verdict is what is known of the rows of rank_lost.
type verdict struct {
	pending int // may come again
	wrong   int // of these, those that have not come in time, and that Redis has
	unknown int // likewise, and that Redis may have forgotten
	lost    int // found to be lost now
}

// judge reports changes that were set aside and don't come again as lost, until ctx ends.
func (l *Ledger) judge(ctx context.Context) {
	limit, complain := rate.Sometimes{Interval: 10 * logEvery}, rate.Sometimes{Interval: time.Minute}
	for range tick.NowAndEvery(ctx, judgeEvery) {
		v, err := l.opts.Store.judge(ctx, time.Now(), l.opts.Redis)
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
		l.metrics.pending.Set(float64(v.pending))
		l.metrics.wrong.Set(float64(v.wrong))
		l.metrics.lost.Add(float64(v.lost))
		l.note(func(s *Status) { s.Lost, s.Pending, s.Wrong = s.Lost+int64(v.lost), v.pending, v.wrong })
		if v.lost > 0 {
			l.log.Error("Redis has lost changes, and they were not applied again: they are in rank_lost with state 2", "changes", v.lost)
		}
		if v.wrong+v.unknown > 0 {
			complain.Do(func() {
				l.log.Error("Redis has changes that the ledger has set aside, or may have forgotten their order ids: the ledger may be wrong, post nothing again",
					"redis_has", v.wrong, "unknown", v.unknown)
			})
		}
	}
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
func (s lostRows) late(ctx context.Context, before time.Time) (map[rankcache.BoardID]*lateRows, error) {
	late := make(map[rankcache.BoardID]*lateRows)
	return late, s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		q := t.d.query("SELECT id, board, COALESCE(order_id, ''), at FROM rank_lost WHERE state = ").arg(lostAside).
			add(" AND lost_at <= ").arg(before.UnixMilli()).add(" ORDER BY id LIMIT ").arg(judgedAtOnce)
		return q.each(t, func(row *sql.Rows) error {
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

// Settled reports whether the ledger has a board as it is in Redis: nothing of it is on its
// way, and nothing that Redis has lost may come again.
func (s lostRows) Settled(ctx context.Context, board rankcache.BoardID, state rankcache.State) (settled bool, err error) {
	err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		p := Proof{Board: board}
		if _, err := proofState(t, &p); err != nil && !errors.Is(err, ErrNoBoard) {
			return err
		}
		pending, err := asideOf(t, board)
		settled = pending == 0 && Level(p.State, state)
		return err
	})
	return settled, err
}

// Level reports whether what the ledger has of a board is what Redis has of it: seq and checksum are the same. The run
// may be another one, as two servers may have applied the same commands. The checksum may be, too, if Redis's run is
// later: the board was added up anew.
func Level(ledger, redis rankcache.State) bool {
	return ledger.Seq == redis.Seq && (ledger.Run < redis.Run || ledger.HasSum == redis.HasSum && ledger.Sum == redis.Sum)
}

// asideOf counts the changes of a board that Redis does not have any more and that may come again.
func asideOf(t *transaction, board rankcache.BoardID) (n int, err error) {
	q := t.d.query("SELECT count(*) FROM rank_lost WHERE ", isAside, " AND board = ").arg(string(board))
	err = q.each(t, func(row *sql.Rows) error { return row.Scan(&n) })
	return n, err
}
