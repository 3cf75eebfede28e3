package replay

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"rankcache/internal/tick"
	"rankcache/wire"
)

const (
	// walkPause is the shortest pause between two requests of the walk.
	walkPause = 50 * time.Millisecond
	// addUpRows is how many rows are added up between two pauses of addUpPause.
	addUpRows  = 4096
	addUpPause = 5 * time.Millisecond
)

// walker compares the members of open boards with Redis, one stretch of rows after the other, at a pace that all boards
// share. It finds what checksums can't: scores that were changed by hand in Redis, and members that changed in this
// process's memory. Its fields belong to the goroutine of run.
type walker struct {
	origin   Origin
	feeds    *feeds
	pace     int         // rows per second
	compares func() bool // else a keeper compares them for all
	log      *slog.Logger

	cursors map[*feed]int // the rank from which the walk goes on
}

func newWalker(c *common, compares func() bool) *walker {
	return &walker{origin: c.origin, feeds: &c.feeds, pace: c.cfg.AuditRows, compares: compares, log: c.log, cursors: make(map[*feed]int)}
}

// run walks until ctx ends: one stretch of each board in turn.
func (w *walker) run(ctx context.Context) error {
	for ctx.Err() == nil {
		boards := w.feeds.sorted()
		w.forget(boards)
		for _, f := range boards {
			if f.replica.readable.Load() && ctx.Err() == nil {
				w.pause(ctx, w.step(ctx, f))
			}
		}
		tick.Sleep(ctx, walkPause)
	}
	return nil
}

// forget drops the cursors of boards that are not followed any more.
func (w *walker) forget(boards []*feed) {
	if len(w.cursors) <= len(boards) {
		return
	}
	current := w.feeds.current()
	maps.DeleteFunc(w.cursors, func(f *feed, _ int) bool { return current[f.id] != f })
}

// pause sleeps for as long as a number of rows takes at the pace.
func (w *walker) pause(ctx context.Context, rows int) {
	tick.Sleep(ctx, max(walkPause, time.Duration(rows)*time.Second/time.Duration(w.pace)))
}

// step compares the next stretch of a board and returns how many rows it had. Where a keeper does that, the stretch is
// only passed, so that boards are added up as often.
func (w *walker) step(ctx context.Context, f *feed) (rows int) {
	epoch, _ := f.replica.position()
	if !w.compares() {
		members := f.replica.board.Progress().Members
		rows = max(0, min(auditRows, members-w.cursors[f]))
		w.advance(ctx, f, epoch, members)
		return rows
	}
	c := &comparer{f.replica, w.origin, TotalSeq}
	observed, v := c.observe(ctx, func() (*observation, error) { return c.fetchRows(ctx, w.cursors[f], auditRows) })
	wrong := c.differences(observed)
	if v.unknown == "" && len(wrong) > 0 {
		wrong, v = c.confirm(ctx, wrong)
	}
	f.audit.comparison(len(observed.claims), len(wrong) > 0, v.unknown != "", time.Now())
	switch {
	case v.unknown != "":
		return len(observed.claims)
	case len(wrong) > 0:
		f.audit.differences(wrong, w.log)
		f.replica.report(epoch, faultDifferences(wrong))
		return len(observed.claims)
	}
	w.advance(ctx, f, epoch, observed.Members)
	return len(observed.claims)
}

// advance goes on to the next stretch. After the last one it adds up the board's own members.
func (w *walker) advance(ctx context.Context, f *feed, epoch, members int) {
	if w.cursors[f] += auditRows; w.cursors[f] >= members {
		w.cursors[f] = 0
		w.addUp(ctx, f, epoch)
	}
}

// addUp compares the sum of the published members with the one that was kept.
func (w *walker) addUp(ctx context.Context, f *feed, epoch int) {
	stamp, pieces := f.replica.board.Snapshot()
	if !stamp.HasSum {
		return
	}
	sum, rows := uint64(0), 0
	for piece := range pieces {
		for _, e := range piece {
			sum += wire.Hash(e.Member, e.Score)
		}
		if rows += len(piece); rows >= addUpRows {
			rows = 0
			tick.Sleep(ctx, addUpPause)
		}
	}
	if sum &= wire.SumMask; sum != stamp.Sum && ctx.Err() == nil {
		f.replica.report(epoch, faultMemory(stamp.State, sum))
	}
}
