package replay

import (
	"fmt"
	"log/slog"
	"time"

	"rankcache"
)

// keeperPace is the pace of the totals poller, which alone uses it, but [Pace.Expected].
type keeperPace = Pace[map[*feed]probe]

// learner gives boards what was read of them. Its fields are those of the totals poller's goroutine.
type learner struct {
	total    TotalSource
	every    time.Duration
	maxStale time.Duration // until when a lost board is kept
	keeper   *keeperPace
	metrics  *metrics
	log      *slog.Logger

	crowded bool // there are many boards: those at rest are read more rarely
	again   bool // a second look is due
}

// probe is where a board was before the request to Redis.
type probe struct {
	feed   *feed
	epoch  int
	before rankcache.Progress
	run    uint64
}

// newProbe notes where a board is before a request to Redis.
func newProbe(f *feed) probe {
	// Held updates are not counted: a late update of a lost history proves nothing.
	return probe{f, f.replica.currentEpoch(), f.replica.board.Progress(), f.replica.board.State().Run}
}

func idsOf(all []probe) []rankcache.BoardID {
	ids := make([]rankcache.BoardID, len(all))
	for i := range all {
		ids[i] = all[i].feed.id
	}
	return ids
}

// judge gives a board what was read from Redis, and reports a fault that it shows.
func (t *learner) judge(p *probe, r reading) {
	f := p.feed
	f.rest.look(&f.lag, r, t.every, t.crowded)
	if why := t.learn(p, r); why != nil {
		f.replica.report(p.epoch, *why)
		return
	}
	if due := t.keeper.Alone(r.requested); f.lag.odd == "" && f.replica.readable.Load() && !due.IsZero() {
		f.rest.due = due
	}
}

// learn gives a board a reading of Redis, and marks an open one as current if it is equal. It returns the fault.
func (t *learner) learn(p *probe, r reading) *fault {
	f := p.feed
	f.measure(r.requested)
	f.replica.follow(r, p.epoch)
	late := f.replica.late(r.State)
	switch known := f.replica.learn(r, p.epoch); {
	case known && late != nil:
		return t.learnLate(p, r, late)
	case !known || !f.replica.readable.Load():
		f.lag = lagWatch{}
		return nil
	}
	f.late = lateWatch{}
	if f.lag.epoch != p.epoch {
		f.lag = lagWatch{epoch: p.epoch}
	}
	after := f.replica.progress()
	f.replica.rise(r, p.epoch)
	var why *fault
	if f.lag.patience = maxLag; f.sources.isReplica() && after.Highest <= after.Contiguous {
		f.lag.patience = mirrorLag
	}
	if unborn := t.total == TotalSeq && p.run == 0 && r.Run == 0 && r.members == 0; !unborn {
		why = f.lag.check(t.total, r, p.before, after, f.sources.exhausted)
	}
	if why == nil && f.sources.alone && after.Applied() < r.Seq {
		why = &fault{kind: kindHole, counted: true, reason: fmt.Sprintf("Redis has gone on to update %d, and the board's log is not read", r.Seq)}
	}
	if why == nil {
		why = f.lag.checkState(r, p.run, f.replica.board, f.sources.proved)
	}
	if why != nil {
		return why
	}
	if r.HasSum && !f.replica.board.State().HasSum {
		f.replica.wake.wake() // its gate can prove it now
	}
	switch {
	case f.lag.odd != "":
		t.again = true
	case t.total == TotalNone:
		if at, ok := f.sources.readToEnd(); ok {
			f.replica.publishCurrent(at)
		}
	case after.Applied() >= r.Seq:
		f.replica.publishCurrent(r.current)
		f.replica.awaited.Store(nil)
	default:
		f.replica.awaited.CompareAndSwap(nil, &r) // the dispatcher will see it reached
	}
	return nil
}

// learnLate gives a board a reading of a replica behind it: at a remembered state they are compared.
func (t *learner) learnLate(p *probe, r reading, late *lateError) *fault {
	f := p.feed
	if why := f.late.look(late, r, p.epoch, t.maxStale); why != nil {
		return why
	}
	switch sum, known := f.replica.board.SumAt(r.Run, r.Seq); {
	case !known || !r.HasSum:
	case sum != r.Sum:
		return new(faultSum(r.State, sum))
	case f.replica.publishCurrent(r.current):
		f.sources.proved(r.State, r.current)
	}
	return nil
}

// lookAgain takes a look at a settled board: if Redis has closed another state after a failover, that counts.
func (f *feed) lookAgain(t reading, epoch int) {
	own := f.replica.board.State()
	if f.replica.late(t.State) != nil {
		return
	}
	if t.life >= rankcache.LifeClosed && t.HasSum && (t.Seq != own.Seq || t.Sum != own.Sum) {
		f.replica.report(epoch, fault{kind: kindSum, reason: fmt.Sprintf("it was closed at update %d, and is closed at %d now, in another state", own.Seq, t.Seq)})
		return
	}
	f.replica.follow(t, epoch)
	f.replica.rise(t, epoch)
}
