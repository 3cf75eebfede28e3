package replay

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v5"

	"rankcache"
)

const (
	// gateEvery is how often a gate looks when nothing wakes it, and openEvery
	// how often that of a board that has not opened for eagerFor.
	gateEvery, openEvery, eagerFor = 100 * time.Millisecond, time.Second, 15 * time.Second
	// RefillSpread is over how long the sidecars of a fleet spread their loads from Redis
	// when all have found the same fault.
	RefillSpread = time.Second
	// readoptEvery is how often writers are asked again to add up a board anew.
	readoptEvery = 10 * time.Second
	// noTopicDeadline is how long a board without a topic holds readiness: there is
	// nothing to wait for, and Redis answers.
	noTopicDeadline = 5 * time.Second
	// A step that failed or did not agree is tried again after this long, growing.
	minRetry, maxRetry = 200 * time.Millisecond, 30 * time.Second
	// soundAfter is how long a board must have been open for its load to have succeeded: a program that keeps changing
	// the board past the writer must not have each sidecar of a fleet load it each time.
	soundAfter = 10 * time.Second
)

// gate opens one board, keeps it audited, and fills and opens it again when it has a fault. Its fields belong to the
// goroutine of run, which is the gate's own because it may wait for Redis.
type gate struct {
	opener
	cfg     Config
	audit   *auditor     // of boards without seqs
	backlog func() int64 // records in the logs of all boards when reading began
	totals  signal       // wakes the totals poller
	past    pastWrites
}

func newGate(c *common, ask *asker, filler *filler, f *feed) *gate {
	compare := &comparer{f.replica, c.origin, c.cfg.TotalSource}
	return &gate{cfg: c.cfg, backlog: c.backlog.Load, totals: c.totalsWake, audit: newAuditor(f, compare, c.cfg.AuditEvery, c.log),
		opener: opener{feed: f, replica: f.replica, origin: c.origin, ask: ask, filler: filler, compare: compare, maxStale: c.cfg.MaxStale,
			metrics: c.metrics, log: c.log, retry: NewRetry()}}
}

// NewRetry returns the pauses after the steps of a gate that failed.
func NewRetry() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = minRetry, maxRetry
	return b
}

// run works on the board until ctx ends.
func (g *gate) run(ctx context.Context) {
	g.begin(time.Now())
	for ctx.Err() == nil {
		now := time.Now()
		if why := g.replica.startRefill(g.cfg.TotalSource); why != nil {
			g.refill(why, now)
		} else if g.replica.currentEpoch() != g.epoch {
			g.begin(now)
		}
		switch {
		case g.suspected:
			g.confirm(ctx, now)
		case g.isOpen:
			g.attend(ctx, now)
		default:
			g.advance(ctx, now)
		}
		g.wait(ctx)
	}
}

// begin starts an attempt in the replica's epoch.
func (g *gate) begin(now time.Time) { g.attempt = attempt{epoch: g.replica.currentEpoch(), begun: now} }

// refill begins to fill a board again that has a fault. One that has faults soon after each
// load is filled ever more rarely.
func (g *gate) refill(why *fault, now time.Time) {
	last := g.attempt
	if last.isOpen && now.Sub(last.openedAt) >= soundAfter {
		g.retry.Reset()
	}
	g.begin(now)
	if why.suspected {
		g.log.Warn("board is compared with Redis before it is read again", "board", g.feed.id, "reason", why.reason)
		g.suspected = why.kind == kindRefuted
		return
	}
	g.log.Warn("board is filled again", "board", g.feed.id, "was_open", last.isOpen, "reason", why.reason)
	if g.past.begins(why, now) {
		g.log.Warn("board is left to Redis: something changes it past rankcache again and again", "board", g.feed.id, "for", restFor.String())
	}
	if last.isOpen {
		g.metrics.refills.Inc()
	} else {
		g.begun = last.begun // a log full of faults must not hold readiness for ever
	}
	if g.cfg.TotalSource == TotalSeq {
		g.differs = why.reason
	}
	g.later()
	g.retryAt = g.retryAt.Add(rand.N(RefillSpread))
	g.totals.wake()
}

// attend looks after an open board.
func (g *gate) attend(ctx context.Context, now time.Time) {
	if g.cfg.TotalSource != TotalSeq {
		g.audit.run(ctx, now)
	}
	if own := g.replica.board.State(); !own.HasSum && !g.sumWrong && g.feed.sources.summed(own.Run) {
		g.replica.report(g.epoch, faultUnproved())
	}
	if g.sumWrong {
		g.readopt(ctx, now)
	}
}

// readopt asks the writers, now and again, to add up the board.
func (g *gate) readopt(ctx context.Context, now time.Time) {
	if now.Sub(g.askedFor) < readoptEvery || g.feed.sources.isReplica() { // nothing is written to a replica
		return
	}
	g.askedFor = now
	if err := g.origin.Readopt(ctx, g.feed.id, g.feed.sources.wrongRun()); err != nil && ctx.Err() == nil {
		g.log.Warn("writers can't be asked to add up a board anew", "board", g.feed.id, "err", err)
	}
}

// wait sleeps until the next look. An open board is woken by what it has to look at: a timer for each would wake a
// process at rest, with 5,000 boards 500 times a second.
func (g *gate) wait(ctx context.Context) {
	every := gateEvery
	switch {
	case g.isOpen && g.cfg.TotalSource != TotalSeq && g.audit.enabled():
		every = max(0, min(openEvery, time.Until(g.audit.due)))
	case g.isOpen && g.sumWrong:
		every = readoptEvery
	case g.isOpen:
		every = never
	case time.Since(g.begun) > eagerFor:
		every = openEvery
	}
	g.replica.wake.wait(ctx, every)
}

// advance takes one step of a board that is not open.
func (g *gate) advance(ctx context.Context, now time.Time) {
	in := g.observe(now)
	s := decide(&in)
	idle := s.act == actWait || now.Before(g.retryAt) || now.Before(g.past.until)
	g.fallBack(ctx, !idle && s.act != actLoad, now)
	g.setStatus(&in, s, now)
	if idle {
		return
	}
	g.trouble = ""
	switch s.act {
	case actLoad:
		g.load(ctx)
	case actReadopt:
		g.readopt(ctx, now)
	case actProve:
		g.prove(ctx)
	case actOpenEmpty:
		g.openEmpty(ctx)
	case actCompare:
		if g.tryOpen(ctx); g.isOpen {
			g.audit.start(g.epoch, g.openedAt)
		}
	}
}

// observe collects the inputs of decide.
func (g *gate) observe(now time.Time) gateInput {
	in := gateInput{total: g.cfg.TotalSource, differs: g.differs, after: g.after}
	in.observe(&g.feed.sources)
	in.sumWrong = g.sumWrong
	in.summed = in.summed && !g.sumWrong && g.cfg.TotalSource == TotalSeq
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

// setStatus sets the state of a board that is not open. After the deadline it is given up to Redis.
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
	if now.Before(g.past.until) {
		s.state, s.reason = rankcache.StateGivenUp, g.past.reason()
	}
	if g.replica.stale.Load() {
		s.state = rankcache.StateStale
		if file := g.feed.file.entries.Load(); file != nil {
			age, _ := file.age(now)
			s.reason = "answered from its file, " + age.Round(time.Second).String() + " old, because Redis does not answer: " + s.reason
		}
	}
	g.changeState(s.state, s.reason, now)
}
