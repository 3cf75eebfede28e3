package replay

import (
	"context"
	"time"

	"rankcache/wire"
)

// totalsPoller decides when all boards' totals are read, from Redis in a few round trips, or from what a keeper has read.
// Its fields are run's goroutine's.
type totalsPoller struct {
	totalsReader
	feeds  *feeds
	wake   signal
	states States // a keeper's, as one more source of readings; nil: there is none
	// written are boards to be looked at sooner, and looked is when that was done last.
	written *writtenHere
	looked  time.Time
}

const (
	// manyBoards is from how many boards on those at rest are read more rarely: a reading takes 1.6 us of Redis's CPU.
	manyBoards = 1000
	secondLook = 4 // by how much sooner Redis is read again after something odd
)

func newTotalsPoller(c *common, keeper *keeperPace) *totalsPoller {
	return &totalsPoller{feeds: &c.feeds, wake: c.totalsWake, written: c.written, states: c.cfg.States, totalsReader: totalsReader{origin: c.origin,
		learner: learner{total: c.cfg.TotalSource, every: c.cfg.TotalsEvery, maxStale: c.cfg.MaxStale, keeper: keeper, metrics: c.metrics, log: c.log}}}
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

// listen waits for d or until it is woken. Meanwhile it takes what a keeper publishes, once at least if due, and looks at
// boards that were written.
func (t *totalsPoller) listen(ctx context.Context, d time.Duration) {
	k := t.keeper
	for end := time.Now().Add(d); ; {
		now := time.Now()
		if t.states != nil && !now.Before(k.Next()) {
			if t.look(ctx); time.Now().Before(end) {
				continue
			}
			return
		}
		until := end
		if t.states != nil && k.Next().Before(end) {
			until = k.Next()
		}
		woken, written := t.wake.waitOr(ctx, t.written.wake, until.Sub(now))
		if written {
			t.lookAtWritten(ctx)
		}
		if woken || ctx.Err() != nil || !time.Now().Before(end) {
			return
		}
	}
}

// look reads the keeper's value once, and learns from it what it tells for sure. That saves requests for boards that are
// as they should be: where they differ, Redis is asked.
func (t *totalsPoller) look(ctx context.Context) {
	k, at, probes := t.keeper, time.Now(), make(map[*feed]probe)
	for _, f := range t.feeds.current() {
		if f.replica.readable.Load() {
			probes[f] = newProbe(f)
		}
	}
	value, err := t.states.States(ctx)
	if err != nil {
		k.Missed(at)
		return
	}
	if before := k.Heard(Look[map[*feed]probe]{value.Serial, at, probes}, value.Every); before != nil && t.compare(ctx, value, before) {
		k.Used(at)
	}
}

// compare learns from states read after a look. Redis is asked where they differ; false: it refutes the keeper.
func (t *totalsPoller) compare(ctx context.Context, value wire.States, before *Look[map[*feed]probe]) bool {
	var doubted []*feed
	due := t.keeper.Spared(before.At)
	for f, p := range before.Before {
		state, there := value.Of(f.key)
		if latest, _ := f.sources.totals(); !there || p.epoch != f.replica.currentEpoch() || !latest.requested.Before(before.At) || !f.replica.board.State().HasSum {
			continue // Redis is read as if there were no keeper
		}
		if state.Run != f.seen.run { // whether that is another life is for Redis to tell
			f.rest.due = time.Time{}
			continue
		}
		r := reading{State: state.State, members: state.Members, life: state.Life, requested: before.At, current: before.At}
		if !t.confirms(&p, r) {
			doubted = append(doubted, f)
			continue
		}
		t.metrics.readings.WithLabelValues(sourceKeeper).Inc()
		f.replica.board.SetPrimed(state.Primed, state.State)
		f.seen.members = state.Members
		if f.rest.due = due; t.keeper.SelfCheck(f.rest.asked, before.At) {
			f.rest.due = time.Time{}
		}
	}
	return !t.doubt(ctx, doubted)
}

// confirms learns a state that a keeper has read, and returns false if that shows a difference.
func (t *totalsPoller) confirms(p *probe, r reading) bool {
	f := p.feed
	own := f.replica.board.State()
	switch {
	case f.replica.settled():
		f.replica.rise(r, p.epoch)
		return r.SameSum(own) && r.Seq == own.Seq
	case r.Run == 0 && own.Run == 0 && r.members == 0: // neither has anything yet
	case !r.HasSum:
		return false
	case r.Run >= p.run && r.Run < own.Run: // read before the board began anew, of which the updates tell already
		return true
	}
	return t.learn(p, r) == nil
}

// doubt asks Redis about boards of which a keeper tells else. If Redis does not, the keeper reads another one.
func (t *totalsPoller) doubt(ctx context.Context, feeds []*feed) (wrong bool) {
	if len(feeds) == 0 {
		return false
	}
	probes := make([]probe, len(feeds))
	for i, f := range feeds {
		probes[i] = newProbe(f)
	}
	refuted, begun := 0, time.Now()
	t.ask(ctx, probes)
	for i, f := range feeds {
		if !f.rest.asked.Before(begun) && f.replica.sound(probes[i].epoch) && f.lag.odd == "" && !f.lost.Load() {
			refuted++
		}
	}
	t.metrics.doubts.WithLabelValues(resultDifferent).Add(float64(len(feeds) - refuted))
	t.metrics.doubts.WithLabelValues(resultEqual).Add(float64(refuted))
	if refuted > 0 {
		t.keeper.Refuted(time.Now())
		t.log.Warn("a keeper tells of boards that Redis has otherwise: check that it reads the same Redis", "boards", refuted, "such_as", feeds[0].id)
	}
	return refuted > 0
}
