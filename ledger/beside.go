package ledger

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"rankcache/internal/tick"
)

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

// takeAgain applies the records of rank_bad that this version can read, and tells what is left until ctx ends.
func (l *Ledger) takeAgain(ctx context.Context) {
	taken := 0
	if err := l.retry(ctx, "database", func() error {
		n, err := l.opts.Store.TakeAgain(ctx)
		taken += n
		return err
	}); err == nil && taken > 0 {
		l.log.Warn("records of rank_bad were applied, which an older ledger could not read", "records", taken)
	}
	for range tick.NowAndEvery(ctx, badEvery) {
		if left, err := l.opts.Store.Bad(ctx); err == nil {
			l.metrics.left.Set(float64(left))
		}
	}
}

func (l *Ledger) retain(ctx context.Context) {
	if l.opts.Keep.Default == 0 && len(l.opts.Keep.Classes) == 0 {
		return
	}
	for range tick.NowAndEvery(ctx, retainEvery) {
		n, err := l.opts.Store.Retain(ctx, l.opts.Keep, time.Now())
		l.metrics.removed.Add(float64(n))
		if err != nil && ctx.Err() == nil {
			l.log.Warn("old rows of the ledger were not removed, the next attempt is in ten minutes", "err", err)
		}
	}
}

// forgetInTurn forgets what is due, until ctx ends, while this ledger leads: as soon as it does, and each ten minutes.
func (l *Ledger) forgetInTurn(ctx context.Context, leads func() bool) {
	last := time.Time{}
	for range tick.Every(ctx, logEvery) {
		if !leads() || time.Since(last) < forgetEvery {
			continue
		}
		last = time.Now()
		n, err := l.opts.Store.forgetDue(ctx, time.Now(), l.opts.Redis)
		if n > 0 {
			l.log.Info("members that were forgotten have a pseudonym in the books now", "boards", n)
		}
		if err != nil && ctx.Err() == nil {
			l.log.Warn("members that are to be forgotten are in the books yet, the next attempt is in ten minutes", "err", err)
		}
	}
}
