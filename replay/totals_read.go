package replay

import (
	"context"
	"errors"
	"time"

	"rankcache"
)

const missedReadings = 3 // after how many intervals without a reading it is unknown where Redis is

// totalsReader reads boards' totals from Redis, and tells which boards it has lost.
type totalsReader struct {
	learner
	origin Origin
}

func (t *totalsReader) ask(ctx context.Context, all []probe) {
	if len(all) == 0 {
		return
	}
	ids := idsOf(all)
	t.metrics.readings.WithLabelValues(sourceRedis).Add(float64(len(all)))
	histories := t.histories(ctx, all, ids)
	at, current := time.Now(), all[0].feed.sources.current()
	stamps, err := t.origin.Stamps(ctx, ids)
	if err != nil && ctx.Err() == nil {
		t.failed(err, all)
	}
	var missing, again []probe
	var looks, anew []reading
	for i := range all {
		if i >= len(stamps) || stamps[i].At.IsZero() {
			continue
		}
		all[i].feed.replica.board.SetPrimed(stamps[i].Primed, stamps[i].State)
		all[i].feed.rest.asked = at
		r := readingOf(&stamps[i], at, current)
		if f := all[i].feed; f.replica.settled() {
			f.lookAgain(r, all[i].epoch)
			continue
		}
		if t.mayBeLost(&all[i], r) {
			missing, looks = append(missing, all[i]), append(looks, r)
			continue
		}
		if t.seemsBegunAgain(all[i].feed, r) {
			again, anew = append(again, all[i]), append(anew, r)
			continue
		}
		t.there(&all[i], r)
		if r.Run != 0 && histories != nil {
			all[i].feed.seen.history = histories[i]
		}
	}
	t.tell(ctx, missing, looks)
	if len(again) == 0 || !t.tellBegunAgain(ctx, again) {
		return
	}
	for i := range again {
		t.there(&again[i], anew[i])
	}
}

// there learns of a board that Redis has.
func (t *totalsReader) there(p *probe, r reading) {
	if f := p.feed; r.Run != 0 {
		f.lost.Store(false)
		f.seen.run, f.seen.members = r.Run, r.members
		if n := f.begunAgain.Load(); n > 0 && !fewer(r, int(n)) {
			f.begunAgain.Store(0)
		}
	}
	t.judge(p, r)
}

func (t *totalsReader) failed(err error, all []probe) {
	t.metrics.redisErrors.Inc()
	for _, p := range all {
		p.feed.sources.redisFailed(err)
	}
	why := "totals of Redis are not known"
	if errors.Is(err, context.DeadlineExceeded) && !t.keeper.Expected(time.Now()) {
		why += ": if hundreds of sidecars read them, run a keeper, which does so for all (rankcache keep)"
	}
	t.log.Warn(why, "err", err)
}

// histories returns the histories of the servers that have the boards, nil if none needs it, or Redis does not answer.
// They are asked for before the boards are looked at: a board that is there then was not lost before.
func (t *totalsReader) histories(ctx context.Context, all []probe, ids []rankcache.BoardID) []string {
	for i := range all {
		if all[i].feed.sources.isReplica() {
			return nil // its history is its own
		}
		if f := all[i].feed; f.replica.readable.Load() && !f.replica.settled() {
			names, err := t.origin.Histories(ctx, ids, false)
			if err != nil {
				return nil // the look itself will tell
			}
			return names
		}
	}
	return nil
}

// mayBeLost reports whether Redis lacks a board that is open here with members.
func (t *totalsReader) mayBeLost(p *probe, r reading) bool {
	f := p.feed
	return t.total == TotalSeq && r.Run == 0 && r.members == 0 && p.run != 0 && p.before.Members > 0 && f.seen.history != "" && f.replica.readable.Load()
}

// seemsBegunAgain reports whether a board has another life than at the last look, with fewer than half of the members.
func (t *totalsReader) seemsBegunAgain(f *feed, r reading) bool {
	return t.total == TotalSeq && f.seen.history != "" && r.Run != f.seen.run && (r.Run != 0 || r.members > 0) && fewer(r, f.seen.members)
}

func fewer(r reading, members int) bool { return 2*r.members < members }

// tellBegunAgain tells of lost boards that others have begun again, and reports whether that could be judged.
func (t *totalsReader) tellBegunAgain(ctx context.Context, again []probe) bool {
	names, err := t.origin.Histories(ctx, idsOf(again), true)
	if err != nil {
		t.failed(err, again)
		return false
	}
	for i := range again {
		f := again[i].feed
		if names[i] == "" || names[i] == f.seen.history {
			continue
		}
		f.begunAgain.Store(int64(f.seen.members))
		t.log.Error("redis has lost a board, and it has begun again: what it had is not on it", "board", f.id, "members", f.seen.members)
	}
	return true
}

// tell decides for boards that Redis lacks whether it has lost them: its history is another one than the one in which
// they were there. Those are kept as they were, until Redis has them again or they are too old. Any other was deleted.
func (t *totalsReader) tell(ctx context.Context, missing []probe, looks []reading) {
	if len(missing) == 0 {
		return
	}
	names, err := t.origin.Histories(ctx, idsOf(missing), true)
	if err != nil {
		t.failed(err, missing)
		return // it is decided at the next look
	}
	for i := range missing {
		f := missing[i].feed
		switch lost := names[i] != "" && names[i] != f.seen.history && time.Since(f.replica.board.CurrentAt()) < t.maxStale; {
		case !lost:
			f.lost.Store(false)
			t.judge(&missing[i], looks[i])
		case !f.lost.Swap(true):
			t.log.Error("redis has lost a board: it is kept as it was", "board", f.id, "members", missing[i].before.Members, "until_age", t.maxStale)
		}
	}
}
