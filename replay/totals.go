package replay

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"rankcache"
)

// totalsPoller reads all boards' totals from Redis, in a few round trips. Its fields are run's goroutine's.
type totalsPoller struct {
	origin   Origin
	total    TotalSource
	every    time.Duration
	feeds    *feeds
	wake     signal
	maxStale time.Duration // until when a lost board is kept
	metrics  *metrics
	log      *slog.Logger

	crowded bool // there are many boards: those at rest are read more rarely
	again   bool // a second look is due

	keeper *keeperStates
}

const (
	// manyBoards is from how many boards on those at rest are read more rarely: a reading takes 1.6 us of Redis's CPU.
	manyBoards = 1000
	secondLook = 4 // by how much sooner Redis is read again after something odd
)

func newTotalsPoller(r *Runner) *totalsPoller {
	return &totalsPoller{origin: r.origin, total: r.cfg.TotalSource, every: r.cfg.TotalsEvery, feeds: &r.feeds, wake: r.totalsWake,
		maxStale: r.cfg.MaxStale, metrics: r.metrics, log: r.log,
		keeper: r.keeper}
}

func (t *totalsPoller) run(ctx context.Context) error {
	for ctx.Err() == nil {
		t.again = false
		t.poll(ctx)
		pause := t.keeper.Poll(t.every)
		if t.again {
			pause /= secondLook
		}
		t.listen(ctx, pause)
	}
	return nil
}

const missedReadings = 3 // after how many intervals without a reading it is unknown where Redis is

// probe is where a board was before the request to Redis.
type probe struct {
	feed   *feed
	epoch  int
	before rankcache.Progress
	run    uint64
}

// poll reads the boards that are due from Redis.
func (t *totalsPoller) poll(ctx context.Context) {
	var all []probe
	at, feeds := time.Now(), t.feeds.current()
	t.crowded = len(feeds) > manyBoards
	for _, f := range feeds {
		if f.rests(at) {
			continue
		}
		if latest, _ := f.sources.totals(); at.Before(f.rest.due) && !latest.requested.IsZero() {
			continue
		}
		all = append(all, newProbe(f))
	}
	t.ask(ctx, all)
}

func (t *totalsPoller) ask(ctx context.Context, all []probe) {
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
			all[i].feed.known.history = histories[i]
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
func (t *totalsPoller) there(p *probe, r reading) {
	if f := p.feed; r.Run != 0 {
		f.lost.Store(false)
		f.known.run, f.known.members = r.Run, r.members
		if n := f.begunAgain.Load(); n > 0 && !fewer(r, int(n)) {
			f.begunAgain.Store(0)
		}
	}
	t.judge(p, r)
}

func (t *totalsPoller) failed(err error, all []probe) {
	t.metrics.redisErrors.Inc()
	for _, p := range all {
		p.feed.sources.redisFailed(err)
	}
	t.log.Warn("totals of Redis are not known", "err", err)
}

// judge gives a board what was read from Redis, and reports a fault that it shows.
func (t *totalsPoller) judge(p *probe, r reading) {
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
func (t *totalsPoller) learn(p *probe, r reading) *fault {
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

const maxLag = 10 * time.Second // how long an open board may lack an update that Redis has

// lagWatch finds out whether an open board keeps up with Redis's total. It belongs to the totals poller.
type lagWatch struct {
	epoch    int
	behind   reading       // the oldest reading that the board has not reached
	ahead    reading       // a state that the board had not reached when it was read
	odd      string        // the difference at the last look, which may pass by itself
	patience time.Duration // how long updates may be missing
	empty    reading       // the first reading in a row without a member, of a board without a total
}

// check takes a reading of Redis with the board's progress before the request and after the answer. exhausted returns
// whether what the board misses since a time will not come: see [sources.exhausted]. It returns a fault that does not
// pass by itself, or nil.
//
// An update is in Redis before it is in the log. So a total below what had been applied before the request, or none at
// all, can't be lag: Redis has lost writes, or the board was deleted.
//
// A board without its updates only because Kafka is slow or away has no fault:
// closing it would turn all its readers to Redis.
func (w *lagWatch) check(total TotalSource, r reading, before, after rankcache.Progress, exhausted func(since time.Time, after time.Duration) bool) *fault {
	switch {
	case total == TotalNone:
		return w.checkMembers(r, after)
	case r.Seq == 0 && r.Run == 0:
		return new(faultGone("total"))
	case newest(total, before) > r.Seq:
		return new(faultAhead(r.Seq, newest(total, before)))
	}
	if after.Applied() >= w.behind.Seq {
		w.behind = reading{}
	}
	if w.behind.Seq == 0 && after.Applied() < r.Seq {
		w.behind = r
	}
	if w.behind.Seq == 0 || r.requested.Sub(w.behind.requested) < w.patience || !exhausted(w.behind.requested, w.patience) {
		return nil
	}
	return &fault{kind: kindHole, reason: fmt.Sprintf("update %d does not come, Redis is at %d", after.Applied()+1, r.Seq)}
}

// disproof returns a fault if a state of Redis, read after the board had a state, shows that Redis has another history.
func disproof(origin, board rankcache.State) *fault {
	switch {
	case origin.Run == 0:
		return new(faultGone("run"))
	case origin.Run > board.Run:
		return new(faultRun(origin.Run, board.Run))
	case origin.Run < board.Run:
		return new(faultRunLost(origin.Run, board.Run))
	case origin.Seq < board.Seq:
		return new(faultAhead(origin.Seq, board.Seq))
	}
	return nil
}

// checkState compares the run of a board with Redis's, and the checksum of a proved one at the same seq. A state that
// the board has not reached is compared at a later look. before is the run that the board had before the request.
func (w *lagWatch) checkState(r reading, before uint64, board Board, proved func(rankcache.State, time.Time)) *fault {
	own := board.State()
	odd := w.odd
	w.odd = ""
	switch {
	case own.Run == 0 && (r.Run == 0 || r.Seq > 0): // empty: its first update gives it its run
		return nil
	case r.Run > own.Run && r.HasSum && own.HasSum && r.Seq > own.Seq: // its updates tell whether it goes on from here
		return nil
	case r.Run > own.Run:
		return new(faultRun(r.Run, own.Run))
	case r.Run < before:
		return new(faultRunLost(r.Run, before))
	case r.Run < own.Run:
		w.odd = faultRunLost(r.Run, own.Run).reason
	case !own.HasSum:
		return nil
	case !r.HasSum:
		w.odd = "the board was changed in Redis past the writer"
	}
	if w.odd != "" { // it counts when it is still so at a second look
		if w.odd != odd {
			return nil
		}
		return &fault{kind: kindRun, reason: w.odd}
	}
	if w.ahead.Seq == 0 {
		w.ahead = r
	}
	for _, at := range []reading{w.ahead, r} {
		sum, known := board.SumAt(at.Run, at.Seq)
		switch {
		case known && sum != at.Sum:
			return new(faultSum(at.State, sum))
		case known:
			proved(at.State, at.current)
		}
		if own.Seq >= w.ahead.Seq {
			w.ahead = reading{}
		}
	}
	return nil
}

const maxRest = 1500 * time.Millisecond // the longest pause between two looks at a board at rest

// rest is when a state is read again: of many boards ever more rarely while it rests. The totals poller's.
type rest struct {
	latest rankcache.State
	due    time.Time
	pause  time.Duration
	asked  time.Time // when it was read from Redis last
}

func (p *rest) look(w *lagWatch, r reading, every time.Duration, crowded bool) {
	if !crowded || r.State != p.latest || w.behind.Seq != 0 || w.odd != "" {
		*p = rest{latest: r.State, asked: p.asked}
		return
	}
	p.pause = max(0, min(p.pause+every/4, maxRest-every))
	p.due = r.requested.Add(p.pause + every/2)
}

// checkMembers watches a board without a total: only that Redis has it at all.
func (w *lagWatch) checkMembers(r reading, after rankcache.Progress) *fault {
	switch {
	case r.members > 0 || after.Members == 0:
		w.empty = reading{}
	case w.empty.requested.IsZero():
		w.empty = r
	case r.requested.Sub(w.empty.requested) >= maxLag:
		return new(faultGone("member"))
	}
	return nil
}

// newest returns the highest total that the board has seen proof of.
func newest(total TotalSource, p rankcache.Progress) uint64 {
	if total == TotalSeq {
		return p.Highest
	}
	return p.Applied()
}
