package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"rankcache"
	"rankcache/wire"
)

const (
	// youngBoard is how old a board may be that is not in Redis any more and counts as lost.
	// An older one has expired, or somebody has deleted it.
	youngBoard = 5 * time.Minute
	// boardsPage is how many boards are compared with Redis at a time.
	boardsPage = 1000
)

// losses finds changes that Redis has lost before others have taken their seqs: a board that
// is at an earlier place of its history than its rows.
type losses struct{ *Store }

// find moves to rank_lost what Redis has lost of boards that were changed since a time, and
// returns how many changes these are.
func (s losses) find(ctx context.Context, now time.Time, since time.Duration) (lost int, err error) {
	after := wire.Update{At: now.Add(-since).UnixMilli()}
	for {
		page, err := s.changedAfter(ctx, after)
		if err != nil || len(page) == 0 {
			return lost, err
		}
		n, err := s.findIn(ctx, page, now)
		if lost += n; err != nil {
			return lost, err
		}
		after = *page[len(page)-1]
	}
}

// changedAfter returns the latest places of the next runs, by the time of their last change.
func (s losses) changedAfter(ctx context.Context, after wire.Update) (places []*wire.Update, err error) {
	err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		q := t.d.query("SELECT at, board, run, seq FROM rank_board WHERE at >= ").arg(after.At).add(" AND (at, board, run) > (").
			arg(after.At).add(", ").arg(string(after.Board)).add(", ").arg(int64(after.Run)).add(") ORDER BY at, board, run LIMIT ").arg(boardsPage)
		return q.each(t, func(row *sql.Rows) error {
			var u wire.Update
			err := row.Scan(&u.At, (*string)(&u.Board), &u.Run, &u.Seq)
			places = append(places, &u)
			return err
		})
	})
	return places, err
}

// findIn compares places with Redis, which is read after them: it can only be further.
func (s losses) findIn(ctx context.Context, places []*wire.Update, now time.Time) (lost int, err error) {
	metas, err := s.Orders.Metas(ctx, boardsOf(places))
	if err != nil {
		return 0, err
	}
	var failed error
	for _, at := range places {
		meta, there := metas[at.Board]
		if there && meta.Run == at.Run && meta.Seq >= at.Seq || !there && at.At < now.Add(-2*youngBoard).UnixMilli() {
			continue
		}
		n, err := s.lose(ctx, at, meta, now)
		lost += n
		failed = errors.Join(failed, err)
	}
	return lost, failed
}

// errBack ends the moving of a board that Redis has again.
var errBack = errors.New("redis has the board again")

// lose moves what Redis has lost of a run.
func (s losses) lose(ctx context.Context, of *wire.Update, meta wire.Meta, now time.Time) (lost int, err error) {
	err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		done := Result{}
		runs, err := t.boardRuns([]*wire.Update{of})
		if err != nil {
			return err
		}
		seq, err := lostFrom(t, runs, of, meta, now)
		if err != nil || seq == 0 {
			return err
		}
		moving := settling{s: s.Store, t: t, now: now.UnixMilli(), done: &done}
		err = moving.moveTail(tail{&wire.Update{Board: of.Board, Run: of.Run, Seq: seq}, false}, runs)
		if err == nil && meta.Run == 0 {
			err = s.stillAbsent(ctx, of.Board)
		}
		lost = done.Lost
		return err
	})
	if errors.Is(err, errBack) { // the next round looks again
		return 0, nil
	}
	return lost, err
}

// stillAbsent is asked before rows of a board that Redis does not have are gone: a rebuild from
// these rows may have put the board back meanwhile, with their order ids.
func (s losses) stillAbsent(ctx context.Context, board rankcache.BoardID) error {
	metas, err := s.Orders.Metas(ctx, []rankcache.BoardID{board})
	if _, there := metas[board]; err == nil && there {
		err = errBack
	}
	return err
}

// lostFrom returns the first seq of a run that Redis has lost, 0 if there is none. What a
// later run has cut off is known when the first change of that run arrives.
func lostFrom(t *transaction, runs runsOf, of *wire.Update, meta wire.Meta, now time.Time) (seq uint64, err error) {
	r := runs.find(of.Board, of.Run)
	switch {
	case r == nil || r.last.Seq < r.begin: // nothing is left
		return 0, nil
	case meta.Run == r.run && meta.Seq < r.last.Seq:
		return meta.Seq + 1, nil
	case meta.Run == r.run:
		return 0, nil
	case meta.Run != 0 && meta.Run < r.run:
		return r.begin, nil
	}
	if next := runs.find(of.Board, meta.Run); r.begin != 1 || meta.Run != 0 && (next == nil || next.base != next.run) {
		return 0, nil
	}
	young, err := bornAfter(t, of.Board, of.Run, now.Add(-youngBoard))
	if young {
		seq = 1
	}
	return seq, err
}

// bornAfter reports whether the first change of a run was made after a time.
func bornAfter(t *transaction, board rankcache.BoardID, run uint64, after time.Time) (young bool, err error) {
	q := t.d.query("SELECT at FROM rank_log WHERE board = ").arg(string(board)).add(" AND run = ").arg(int64(run)).add(" AND seq = 1")
	err = q.each(t, func(row *sql.Rows) error {
		var at int64
		err := row.Scan(&at)
		young = at > after.UnixMilli()
		return err
	})
	return young, err
}
