package replay

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/wire"
)

// States is where a keeper publishes what it has read of all boards.
type States interface {
	// States returns the newest value. The error is why there is none that can be read.
	States(context.Context) (wire.States, error)
}

const (
	// findKeeperEvery is how often it is looked for a keeper's value while there is none.
	findKeeperEvery = 5 * time.Second
	// staleStates is the age from which on a keeper's states are of no use, unless it reads so rarely that five of its
	// intervals are longer.
	staleStates = 3 * time.Second
	// ownReadings are the time between two readings of Redis by this process while a keeper that was there is away.
	// The first is a random part of it later: else a whole fleet would read at once.
	ownReadings = 5 * time.Second
	// keeperReturns is for how long after its last value a keeper that was there is expected back: until then no rows
	// are compared.
	keeperReturns = 10 * time.Minute
	// selfCheck is how often each board is read by this process though a keeper reads it: the keeper may read another Redis.
	selfCheck = 5 * time.Minute
	// mistrust is for how long a keeper is not heard after Redis did not confirm what its value told.
	mistrust = 30 * time.Second
)

// keeperStates are the states that a keeper has read, as one more source of readings. They save the requests for boards
// that are as they should be, and no more: where they tell of a difference, Redis is asked. Its fields but seen, which the walker reads, belong to the
// totals poller.
//
// A keeper takes the serial k before it reads, and publishes what it has read as k+1 only if the serial is still k. So
// the reading of j began after j-1 was published, and that was after a look here that showed j-2 or less: what this process
// had before that look, Redis had before the reading. Such a look is the time of the reading.
type keeperStates struct {
	from  States       // nil: there is none
	older uint64       // by how much lower the serial of a look is that was before the reading: 2
	looks []look       // that may date a later value, oldest first
	next  time.Time    // of the next look
	seen  atomic.Int64 // when a value last dated a reading that Redis did not refute, in Unix nanoseconds; 0: never
	every time.Duration
}

// Who has read a state from Redis, as metrics count it.
const sourceRedis, sourceKeeper = "redis", "keeper"

// look is what was here before a look at the keeper's value, which then showed a serial.
type look struct {
	serial uint64
	at     time.Time
	probes map[*feed]probe
}

// expected returns whether a keeper is there, or was until lately.
func (k *keeperStates) expected(now time.Time) bool {
	seen := k.seen.Load()
	return seen != 0 && now.Sub(time.Unix(0, seen)).Abs() < keeperReturns // a clock may go back
}

// take adds a look that showed a serial and returns the latest before it that is older than the reading of this serial; nil
// if there is none, or if the serial was looked at before. A lower serial than before is another history of the key: what was
// seen of the former dates nothing.
func (k *keeperStates) take(now look) (before *look) {
	if last := len(k.looks) - 1; last >= 0 {
		switch shown := k.looks[last].serial; {
		case now.serial < shown:
			k.looks = nil
		case now.serial == shown:
			k.looks[last] = now
			return nil
		}
	}
	k.looks = append(k.looks, now)
	for i := range slices.Backward(k.looks) {
		if now.serial >= k.older && k.looks[i].serial <= now.serial-k.older {
			k.looks = k.looks[i:]
			return &k.looks[0]
		}
	}
	return nil
}

// forget drops looks that are too old to date a value: they hold boards.
func (k *keeperStates) forget(now time.Time) {
	k.looks = slices.DeleteFunc(k.looks, func(l look) bool { return now.Sub(l.at) > k.stale() })
	if len(k.looks) == 0 {
		k.looks = nil
	}
}

// stale is the age from which on states are of no use.
func (k *keeperStates) stale() time.Duration { return max(staleStates, 5*k.every) }

// listen waits for d or until it is woken. Meanwhile it takes what a keeper publishes, once at least if that is due, and no more
// after d: it may take longer to read than the time between two looks.
func (t *totalsPoller) listen(ctx context.Context, d time.Duration) {
	k := t.keeper
	for end := time.Now().Add(d); ; {
		now := time.Now()
		if k.from != nil && !now.Before(k.next) {
			if t.look(ctx); time.Now().Before(end) {
				continue
			}
			return
		}
		until := end
		if k.from != nil && k.next.Before(end) {
			until = k.next
		}
		if woken := t.wake.wait(ctx, until.Sub(now)); woken || ctx.Err() != nil || !time.Now().Before(end) {
			return
		}
	}
}

// look reads the keeper's value once, and learns from it what it tells for sure.
func (t *totalsPoller) look(ctx context.Context) {
	k := t.keeper
	now := look{at: time.Now(), probes: make(map[*feed]probe)}
	for _, f := range t.feeds.current() {
		if f.replica.readable.Load() {
			now.probes[f] = newProbe(f)
		}
	}
	k.forget(now.at)
	value, err := k.from.States(ctx)
	k.next = now.at.Add(jitter(findKeeperEvery))
	if err != nil {
		if k.expected(now.at) {
			k.next = now.at.Add(jitter(max(k.every, time.Second)))
		}
		return
	}
	k.every = value.Every
	k.next = now.at.Add(jitter(k.every))
	now.serial = value.Serial
	before := k.take(now)
	if before == nil || now.at.Sub(before.at) > k.stale() {
		return
	}
	if t.compare(ctx, value, before) {
		k.seen.Store(now.at.UnixNano())
	}
}

// compare learns from states that were read after a look. Redis is asked about boards that differ; false if it refutes the keeper.
func (t *totalsPoller) compare(ctx context.Context, value wire.States, before *look) bool {
	var doubted []*feed
	due := before.at.Add(t.keeper.stale() + rand.N(ownReadings))
	for f, p := range before.probes {
		state, there := value.Of(f.key)
		if latest, _ := f.sources.totals(); !there || p.epoch != f.replica.currentEpoch() || !latest.requested.Before(before.at) || !f.replica.board.State().HasSum {
			continue // Redis is read as if there were no keeper
		}
		if state.Run != f.known.run { // whether that is another life is for Redis to tell
			f.rest.due = time.Time{}
			continue
		}
		r := reading{State: state.State, members: state.Members, life: state.Life, requested: before.at, current: before.at}
		if !t.confirms(&p, r) {
			doubted = append(doubted, f)
			continue
		}
		t.metrics.readings.WithLabelValues(sourceKeeper).Inc()
		f.replica.board.SetPrimed(state.Primed, state.State)
		f.known.members = state.Members
		if f.rest.due = due; before.at.Sub(f.rest.asked) > t.selfCheck {
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

// doubt reads boards from Redis of which a keeper has told something else than what is here. If Redis does not, the keeper
// reads another Redis, which doubt reports.
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
		k := t.keeper
		k.looks, k.next = nil, time.Now().Add(jitter(mistrust))
		t.errLog.Do(func() {
			t.log.Warn("a keeper tells of boards that Redis has otherwise: check that it reads the same Redis", "boards", refuted, "such_as", feeds[0].id)
		})
	}
	return refuted > 0
}

// newProbe notes where a board is before a request to Redis.
func newProbe(f *feed) probe {
	// Held updates are not counted: a late update of a lost history proves nothing.
	return probe{f, f.replica.currentEpoch(), f.replica.board.Progress(), f.replica.board.State().Run}
}

// idsOf returns the boards of probes.
func idsOf(all []probe) []rankcache.BoardID {
	ids := make([]rankcache.BoardID, len(all))
	for i := range all {
		ids[i] = all[i].feed.id
	}
	return ids
}
