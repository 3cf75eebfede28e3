package replay

import (
	"context"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"

	"rankcache"
)

const (
	// gateEvery is how often a gate looks when nothing wakes it, and openEvery
	// how often that of an open board, which then only measures its rates.
	gateEvery, openEvery = 100 * time.Millisecond, time.Second
	// noTopicDeadline is how long a board without a topic holds readiness: there is
	// nothing to wait for, and Redis answers.
	noTopicDeadline = 5 * time.Second
	// What failed or did not agree is tried again after this long, growing.
	minRetry, maxRetry = 200 * time.Millisecond, 30 * time.Second
	// maxMemoryWait is how long a gate waits for memory before it looks at its deadline.
	maxMemoryWait = 5 * time.Second
	// soundAfter is how long a board must have been open for its next fault to be
	// the first again.
	soundAfter = 5 * time.Minute
)

// gate opens one board, keeps it audited, and fills and opens it again when it has
// a fault. Its fields belong to the goroutine of run, which is the gate's own because
// it may wait for Redis.
type gate struct {
	feed    *feed
	replica *replica
	compare *comparer
	audit   *auditor
	filler  *filler
	cfg     Config
	backlog func() int64 // records in the logs of all boards when reading began
	totals  signal       // wakes the totals poller
	metrics *metrics
	log     *slog.Logger

	attempt
	retry *backoff.ExponentialBackOff // kept over epochs
}

// attempt is what a gate has found out in one epoch.
type attempt struct {
	epoch    int
	begun    time.Time
	endedAt  time.Time // when the log was read; zero before
	loadedAt time.Time // when the board was loaded from Redis; zero if it was not
	after    uint64    // the total read after that load
	differs  string    // how the board was found to be wrong
	trouble  string    // why the last action failed
	isOpen   bool
	openedAt time.Time
	retryAt  time.Time // no action before it
}

func newGate(r *Runner, f *feed) *gate {
	g := &gate{feed: f, replica: f.replica, filler: r.filler, cfg: r.cfg, backlog: r.backlog.Load, totals: r.totalsWake,
		metrics: r.metrics, log: r.log, retry: backoff.NewExponentialBackOff()}
	g.compare = &comparer{f.replica, r.origin, r.cfg.TotalSource}
	g.audit = newAuditor(f, g.compare, r.cfg.AuditEvery, r.log)
	g.retry.InitialInterval, g.retry.MaxInterval = minRetry, maxRetry
	return g
}

// run works on the board until ctx ends.
func (g *gate) run(ctx context.Context) {
	g.begin(time.Now())
	for ctx.Err() == nil {
		now := time.Now()
		g.feed.measure(now)
		if why := g.replica.startRefill(g.cfg.TotalSource); why != nil {
			g.refill(why, now)
		} else if g.replica.currentEpoch() != g.epoch {
			g.begin(now)
		}
		if g.isOpen {
			g.audit.run(ctx, now)
		} else {
			g.advance(ctx, now)
		}
		g.wait(ctx)
	}
}

// begin starts an attempt in the replica's epoch.
func (g *gate) begin(now time.Time) { g.attempt = attempt{epoch: g.replica.currentEpoch(), begun: now} }

// refill begins to fill a board again that has a fault. One that has faults again
// and again is filled ever more rarely.
func (g *gate) refill(why *fault, now time.Time) {
	last := g.attempt
	g.log.Warn("board is filled again", "board", g.feed.id, "was_open", last.isOpen, "reason", why.reason)
	g.begin(now)
	if last.isOpen {
		g.metrics.refills.Inc()
	} else {
		g.begun = last.begun // a log full of faults must not hold readiness for ever
	}
	if last.isOpen && now.Sub(last.openedAt) >= soundAfter {
		g.retry.Reset()
	}
	if g.cfg.TotalSource == TotalSeq {
		g.differs = why.reason
	}
	g.later()
	g.totals.wake()
}

// wait sleeps until the next look.
func (g *gate) wait(ctx context.Context) {
	every := gateEvery
	if g.isOpen {
		every = openEvery
		if g.audit.enabled() {
			every = max(0, min(every, time.Until(g.audit.due)))
		}
	}
	g.replica.wake.wait(ctx, every)
}

// advance takes one step of a board that is not open.
func (g *gate) advance(ctx context.Context, now time.Time) {
	in := g.observe(now)
	s := decide(&in)
	idle := s.act == actWait || now.Before(g.retryAt)
	g.fallBack(!idle && s.act != actLoad, now)
	g.setStatus(&in, s, now)
	if idle {
		return
	}
	g.trouble = ""
	switch s.act {
	case actLoad:
		g.load(ctx)
	case actCompare:
		g.tryOpen(ctx, 0)
	case actAcceptHoles:
		g.tryOpen(ctx, in.target)
	}
}

// observe collects what decide needs.
func (g *gate) observe(now time.Time) gateInput {
	in := gateInput{total: g.cfg.TotalSource, differs: g.differs, after: g.after}
	g.feed.sources.observe(&in)
	switch {
	case !in.ended:
		g.endedAt = time.Time{} // also when the log is read again for another board
	case g.endedAt.IsZero():
		g.endedAt = now
	default:
		in.endedFor = now.Sub(g.endedAt)
	}
	if in.loaded = !g.loadedAt.IsZero(); in.loaded {
		in.loadedFor = now.Sub(g.loadedAt)
	}
	in.have = g.replica.progress()
	return in
}

// load fills the board from Redis.
func (g *gate) load(ctx context.Context) {
	done, ok := g.reserve(ctx)
	if !ok {
		return
	}
	defer done()
	g.later() // also after a success: loading again at once would not help
	after, err := g.filler.fromRedis(ctx, g.replica, g.epoch)
	if err != nil {
		g.failed(ctx, err.Error())
		return
	}
	g.after, g.loadedAt, g.differs = after, time.Now(), "" // a difference was of what is replaced
	g.retryAt = time.Time{}
	g.replica.wake.wake()
}

// reserve waits for memory to fill the board. It returns false after some time, so that a
// board is given up by its deadline, and tries again at the next step.
func (g *gate) reserve(ctx context.Context) (done func(), ok bool) {
	ctx, cancel := context.WithTimeout(ctx, maxMemoryWait)
	defer cancel()
	done, err := g.filler.reserve(ctx, g.feed.id)
	if err != nil {
		g.trouble = "waits for memory: other boards are being filled"
	}
	return done, err == nil
}

// tryOpen compares the board with Redis and opens it if they agree. Holes are
// accepted up to a seq, 0 for none.
func (g *gate) tryOpen(ctx context.Context, acceptHoles uint64) {
	done, ok := g.reserve(ctx) // the first publication sorts the board
	if !ok {
		return
	}
	defer done()
	if acceptHoles == 0 { // otherwise updates would wait for what never comes
		g.replica.startOrdering()
	}
	v := g.compare.beforeOpening(ctx, g.epoch, acceptHoles > 0)
	if !v.agrees {
		g.replica.stopOrdering()
		g.later()
		g.differs = v.differs
		g.failed(ctx, v.unknown+v.differs)
		return
	}
	if g.replica.open(g.epoch, opening{equalAt: v.at, acceptHoles: acceptHoles}) {
		g.isOpen, g.openedAt = true, time.Now()
		g.audit.start(g.epoch, g.openedAt)
		g.changeState(rankcache.StateOpen, "equal to Redis", time.Now())
	}
}

func (g *gate) later() { g.retryAt = time.Now().Add(g.retry.NextBackOff()) }

func (g *gate) failed(ctx context.Context, why string) {
	if ctx.Err() != nil {
		return
	}
	g.trouble = why
	g.log.Warn("board is not open", "board", g.feed.id, "reason", why)
}

// fallBack makes a board that was filled from its file readable before it is opened,
// or closes it again. It is read with the file's age and only while Redis can't
// answer: a copy that was not compared is better than a failed read, and worse than
// Redis. It never counts as open: it is not marked as current and not saved, and once
// Redis answers it is compared and opened, or closed. If comparing, it is left as it
// is until the comparison has ended.
func (g *gate) fallBack(comparing bool, now time.Time) {
	wanted := g.feed.sources.redisAway() && g.feed.file.isYounger(now, g.cfg.MaxStale)
	switch {
	case wanted && g.replica.openStale(g.epoch):
		g.metrics.stales.Inc()
		g.log.Warn("board is answered from its file: Redis does not answer", "board", g.feed.id)
	case !wanted && !comparing && g.replica.closeStale():
		g.log.Info("board is not answered from its file any more", "board", g.feed.id)
	}
}

// setStatus sets the state of a board that is not open. After the deadline it is
// given up to Redis.
func (g *gate) setStatus(in *gateInput, s step, now time.Time) {
	if g.trouble != "" {
		s.reason += " (" + g.trouble + ")"
	}
	limit := g.cfg.Deadline + time.Duration(g.backlog())*g.cfg.DeadlinePerUpdate
	if in.kafkaKnown && !in.topicKnown {
		limit = min(limit, noTopicDeadline)
	}
	if now.Sub(g.begun) >= limit {
		s.state, s.reason = rankcache.StateGivenUp, "not open after "+limit.String()+", answered by Redis: "+s.reason
	}
	if g.replica.stale.Load() {
		s.state = rankcache.StateStale
		if file := g.feed.file.entries(); file != nil {
			age, _ := file.age(now)
			s.reason = "answered from its file, " + age.Round(time.Second).String() + " old, because Redis does not answer: " + s.reason
		}
	}
	g.changeState(s.state, s.reason, now)
}

func (g *gate) changeState(state rankcache.BoardState, reason string, now time.Time) {
	if before := g.feed.status.set(state, reason, now); before != state {
		g.log.Info("board", "board", g.feed.id, "state", state, "was", before, "reason", reason)
	}
}
