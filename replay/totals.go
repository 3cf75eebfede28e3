package replay

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"rankcache"
)

// totals reads the totals of all boards from Redis, in one round trip each time:
// the gates' goal, and the audit of open boards.
type totals struct {
	origin  Origin
	cfg     Config
	routes  *atomic.Pointer[routes]
	boards  Boards
	kick    chan struct{} // asks for a reading now
	metrics *metrics
	log     *slog.Logger
	errLog  limiter
}

func newTotals(r *Runner) *totals {
	return &totals{origin: r.origin, cfg: r.cfg, routes: &r.routes, boards: r.boards, kick: r.totalsKick, metrics: r.metrics, log: r.log}
}

func (t *totals) run(ctx context.Context) error {
	for ctx.Err() == nil {
		t.read(ctx)
		rest(ctx, t.cfg.TotalsEvery, t.kick)
	}
	return nil
}

func (t *totals) read(ctx context.Context) {
	var all []*follower
	var ids []rankcache.BoardID
	var before []standpoint
	for id, f := range *t.routes.Load() {
		all, ids, before = append(all, f), append(ids, id), append(before, f.standpoint())
	}
	if len(all) == 0 {
		return
	}
	asked := time.Now()
	stamps, err := t.origin.Stamps(ctx, ids)
	if err != nil && ctx.Err() == nil {
		t.failed(err, all)
	}
	for i, f := range all {
		if i < len(stamps) && !stamps[i].At.IsZero() {
			t.learn(f, reading{stamps[i].Seq, stamps[i].Members, asked}, before[i])
		}
	}
}

func (t *totals) failed(err error, all []*follower) {
	t.metrics.redisErrors.Inc()
	for _, f := range all {
		f.redisFailed(err)
	}
	if skipped, ok := t.errLog.allow(time.Now()); ok {
		t.log.Warn("totals of Redis are not known", "err", err, "more", skipped)
	}
}

// standpoint is where a board was before Redis was asked.
type standpoint struct {
	epoch int
	rankcache.Progress
}

func (f *follower) standpoint() standpoint {
	f.mu.Lock()
	defer f.mu.Unlock()
	return standpoint{f.epoch, f.progressLocked()}
}

// learn tells a board what Redis has, and an open one's readers how old it is.
func (t *totals) learn(f *follower, r reading, before standpoint) {
	if !f.learn(r, before.epoch) || !f.readable.Load() {
		f.watch = watch{}
		return
	}
	if f.watch.epoch != before.epoch {
		f.watch = watch{epoch: before.epoch}
	}
	after := f.progress()
	if why := f.watch.look(t.cfg.Total, r, before.Progress, after, f.dry); why != nil {
		f.report(before.epoch, *why, t.boards)
		return
	}
	switch {
	case t.cfg.Total == TotalNone:
		f.currentByLog()
	case after.Applied() >= r.seq:
		f.show(r.asked)
		f.overdue.Store(nil)
	default:
		f.overdue.CompareAndSwap(nil, &r) // the pump will see it reached
	}
}

// rest waits for about d, or until it is kicked. The jitter keeps a fleet of
// sidecars that was started together from asking together.
func rest(ctx context.Context, d time.Duration, kick <-chan struct{}) {
	timer := time.NewTimer(jitter(d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-kick:
	case <-timer.C:
	}
}
