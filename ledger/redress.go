package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/internal/tick"
	"rankcache/wire"
)

const (
	// redressEvery is the time between two looks for what Redis has lost, and longLookEvery
	// that between two looks at all boards that were changed within longLook. The other looks
	// are at those that were changed within shortLook.
	redressEvery  = 2 * time.Second
	longLookEvery = 30 * time.Second
	shortLook     = 2 * time.Minute
	longLook      = 2 * time.Hour
	// redressAtOnce is how many lost changes are decided at a time, and postAgain when those
	// that no writer has applied are posted again.
	redressAtOnce = 5000
	postAgain     = 10 * time.Second
	// absentLife is the order life of a board that Redis does not have, and goneAfter how long
	// such a board may be absent.
	absentLife = time.Hour
	goneAfter  = 10 * time.Minute
)

// Reasons why a lost change is not applied again.
const (
	lostTrim    = "trim"     // the change that caused it is, and trims again
	lostNoOrder = "no_order" // it has no order id, so that it might count twice
	lostChanged = "changed"  // its member was set or deleted since; or changed at all, if it is a set or delete itself
	lostTooOld  = "too_old"  // Redis may have forgotten its order id
	lostClosed  = "closed"   // its board is closed
	lostGone    = "gone"     // its board is not in Redis
	lostRaced   = "raced"    // it is, but behind a set or delete of its member that came at the same moment
)

// redresser has what Redis has lost applied again: it posts the changes, with their order
// ids, to the topic of commands. What was not lost is a repeat there. It belongs to one
// goroutine.
type redresser struct {
	store    *Store
	post     func(ctx context.Context, changes []*wire.Update) error
	metrics  *metrics
	log      *slog.Logger
	now      func() time.Time
	longLook time.Time                    // the last one
	reached  map[rankcache.BoardID]uint64 // the seqs of boards in Redis at the last round
}

// redress has what Redis has lost applied again, until ctx ends.
func redress(ctx context.Context, l *Ledger, post func(context.Context, []*wire.Update) error) {
	r := &redresser{store: l.opts.Store, post: post, metrics: l.metrics, log: l.log, now: time.Now}
	limit := rate.Sometimes{Interval: 10 * logEvery}
	for range tick.Every(ctx, redressEvery) {
		pending, err := r.round(ctx)
		if err != nil {
			limit.Do(func() {
				l.log.Warn("what Redis has lost was not looked for, or not applied again: the next attempt is in two seconds", "err", err)
			})
			continue
		}
		l.metrics.pending.Set(float64(pending))
		l.note(func(s *Status) { s.Pending = pending })
	}
}

// round finds what was lost, and takes each change that is pending one step further. Of all
// ledgers one does so at a time. It returns how many changes are pending.
func (r *redresser) round(ctx context.Context) (pending int, err error) {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	now := r.now()
	mine, err := r.store.takeTurn(ctx, now, now.Add(redressEvery*3/4))
	if err == nil && mine {
		err = errors.Join(r.find(ctx, now), r.redress(ctx, now))
	}
	if err != nil {
		return 0, err
	}
	return r.store.Pending(ctx)
}

func (r *redresser) find(ctx context.Context, now time.Time) error {
	since, long := shortLook, now.Sub(r.longLook) >= longLookEvery
	if long {
		since = longLook
	}
	n, err := losses{r.store}.find(ctx, now, since)
	if n > 0 {
		r.metrics.rows.WithLabelValues("lost").Add(float64(n))
		r.log.Warn("Redis is behind the ledger: changes that it has lost are in rank_lost", "changes", n)
	}
	if err != nil {
		return fmt.Errorf("comparing boards with Redis: %w", err)
	}
	if long {
		r.longLook = now
	}
	return nil
}

// redress decides what is pending, and posts what is to be applied again.
func (r *redresser) redress(ctx context.Context, now time.Time) error {
	rows, err := r.decide(ctx, now)
	if err != nil || len(rows) == 0 {
		return err
	}
	var again, post []*lostRow
	kept := make(map[string][]*lostRow)
	for _, row := range rows {
		switch {
		case row.reason != "":
			kept[row.reason] = append(kept[row.reason], row)
		case row.again != nil:
			again = append(again, row)
		case now.UnixMilli()-row.postedAt >= postAgain.Milliseconds():
			post = append(post, row)
		}
	}
	if err := r.store.settle(ctx, again); err != nil {
		return err
	}
	r.metrics.redressed.Add(float64(len(again)))
	for reason, rows := range kept {
		if err := r.giveUp(ctx, rows, reason); err != nil {
			return err
		}
	}
	if len(post) == 0 {
		return nil
	}
	changes := make([]*wire.Update, len(post))
	for i, row := range post {
		changes[i] = row.Update
	}
	if err := r.post(ctx, changes); err != nil {
		return err
	}
	return r.store.posted(ctx, post, now.UnixMilli())
}

// giveUp reports rows that are not applied again.
func (r *redresser) giveUp(ctx context.Context, rows []*lostRow, reason string) error {
	if err := r.store.report(ctx, rows, reason); err != nil || reason == lostTrim {
		return err
	}
	r.metrics.unredressed.WithLabelValues(reason).Add(float64(len(rows)))
	r.log.Error("changes that Redis has lost are not applied again: rank_lost has the score after each, and the member's score now as now_score",
		"changes", len(rows), "reason", reason, "first_board", rows[0].Board, "first_member", rows[0].Member)
	return nil
}

// decide returns rows of which it is known what is to be done.
func (r *redresser) decide(ctx context.Context, now time.Time) (known []*lostRow, err error) {
	var rows []*lostRow
	since := make(map[rankcache.BoardID][]*wire.Update)
	metas := make(map[rankcache.BoardID]wire.Meta)
	err = r.store.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		if rows, err = r.store.pending(t, redressAtOnce); err != nil || len(rows) == 0 {
			return err
		}
		if metas, err = r.read(ctx, t, rows); err != nil {
			return err
		}
		for first := 0; first < len(rows); {
			board, end := rows[first].Board, first
			for end < len(rows) && rows[end].Board == board {
				end++
			}
			if since[board], err = r.store.touched(t, rows[first:end]); err != nil {
				return err
			}
			first = end
		}
		return nil
	})
	for _, row := range rows {
		meta, there := metas[row.Board]
		if there && meta.Run == 0 { // the ledger does not have yet what has happened since
			continue
		}
		row.reason = row.why(meta, since[row.Board], now)
		known = append(known, row)
	}
	return known, err
}

// read locks the rows' boards and returns their states in Redis; of those that the ledger has not
// reached, the zero state.
func (r *redresser) read(ctx context.Context, t *transaction, rows []*lostRow) (map[rankcache.BoardID]wire.Meta, error) {
	updates := make([]*wire.Update, len(rows))
	for i, row := range rows {
		updates[i] = row.Update
	}
	runs, err := t.boardRuns(updates)
	if err != nil {
		return nil, err
	}
	metas, err := r.store.Orders.Metas(ctx, boardsOf(updates))
	if err != nil {
		return nil, err
	}
	reached := make(map[rankcache.BoardID]uint64)
	for board, meta := range metas {
		h, before := runs.highest(board), r.reached[board]
		if reached[board] = meta.Seq; h == nil || h.last.Seq < meta.Seq && (before == 0 || h.last.Seq < before) {
			metas[board] = wire.Meta{}
		}
	}
	r.reached = reached
	return metas, nil
}

// why returns why a row is not to be applied again, "" if it is; the zero meta is of a board
// that Redis does not have.
func (row *lostRow) why(meta wire.Meta, since []*wire.Update, now time.Time) string {
	life, turn := int64(meta.OrderLife), int64(meta.Turn) // #nosec G115 -- far below 2^63
	if meta.Run == 0 {
		life = int64(absentLife.Seconds())
	}
	span := life*1000 + 120_000 // as in apply.lua
	turn = max(turn, now.UnixMilli()/span)
	switch {
	case row.Op == wire.OpTrim:
		return lostTrim
	case row.again != nil && row.changed(since, row.again):
		return lostRaced
	case row.again != nil:
		return ""
	case row.OrderID == "":
		return lostNoOrder
	case meta.Life >= wire.LifeClosed:
		return lostClosed
	case row.At < (turn-1)*span+60_000:
		return lostTooOld
	case meta.Run == 0 && now.UnixMilli()-row.lostAt > goneAfter.Milliseconds():
		return lostGone
	case row.changed(since, nil):
		return lostChanged
	}
	return ""
}

// changed reports whether the row's member was changed since, before a place, in a way that
// forbids to apply the row behind it: an increment goes behind increments.
func (row *lostRow) changed(since []*wire.Update, before *wire.Update) bool {
	for _, u := range since {
		if u.Member == row.Member && (row.Op != wire.OpIncr || u.Op == wire.OpSet || u.Op == wire.OpDelete) && (before == nil || later(before, u)) {
			return true
		}
	}
	return false
}
