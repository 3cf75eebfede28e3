package replay

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v5"

	"rankcache"
)

const (
	// gateEvery is how often a gate looks when nothing wakes it, and openEvery
	// how often that of an open board, which then only takes its rate.
	gateEvery, openEvery = 100 * time.Millisecond, time.Second
	// vacantAfter is how long a board that has no topic holds readiness: there
	// is nothing to wait for, and Redis answers.
	vacantAfter = 5 * time.Second
	// What failed or did not agree is tried again after this long, growing.
	retryFirst, retryMost = 200 * time.Millisecond, 30 * time.Second
	// sound is how long a board must have been open for its next fault to be
	// the first again.
	sound = 5 * time.Minute
)

// gate brings one board to its opening, and again when it has a fault. It runs in
// a goroutine of its own, because it may wait for Redis.
type gate struct {
	f       *follower
	boards  Boards
	origin  Origin
	cfg     Config
	backlog func() int64    // records in the logs of all boards when reading began
	totals  chan<- struct{} // asks for Redis's totals now
	metrics *metrics
	log     *slog.Logger

	// Of this epoch:
	epoch    int
	begun    time.Time
	endedAt  time.Time // zero as long as the log is not read
	loadedAt time.Time // zero without a snapshot
	after    uint64    // the total read after the snapshot
	differs  string    // how the board was found to be wrong
	trouble  string    // why the last action came to nothing
	isOpen   bool
	openedAt time.Time
	auditAt  time.Time // of the next
	retryAt  time.Time // no action before it

	retry  *backoff.ExponentialBackOff // outlives epochs
	cursor int                         // the rank from which the audit goes on; outlives them too
	doubts doubts
}

// run follows the board until ctx ends.
func (g *gate) run(ctx context.Context) {
	g.retry = backoff.NewExponentialBackOff()
	g.retry.InitialInterval, g.retry.MaxInterval = retryFirst, retryMost
	g.begin(time.Now())
	for ctx.Err() == nil {
		now := time.Now()
		g.f.measure(now)
		if why := g.f.heal(g.cfg.Total, g.boards); why != nil {
			g.refill(why, now)
		} else if g.f.epochNow() != g.epoch {
			g.begin(now)
		}
		switch {
		case !g.isOpen:
			g.advance(ctx, now)
		case g.auditDue(now):
			g.audit(ctx)
		}
		g.wait(ctx)
	}
}

// refill fills a board again that was closed because of a fault. One that has a
// fault again and again is filled ever more rarely.
func (g *gate) refill(why *fault, now time.Time) {
	wasOpen, begun := g.isOpen, g.begun
	g.log.Warn("board is filled again", "board", g.f.id, "was_open", wasOpen, "reason", why.reason)
	g.begin(now)
	if wasOpen {
		g.metrics.refills.Inc()
	} else {
		g.begun = begun // a log full of faults must not hold readiness for ever
	}
	if wasOpen && now.Sub(g.openedAt) >= sound {
		g.retry.Reset()
	}
	if g.cfg.Total == TotalSeq {
		g.differs = why.reason
	}
	g.later()
	nudge(g.totals)
}

// begin forgets what was found out in an earlier epoch.
func (g *gate) begin(now time.Time) {
	g.epoch, g.begun = g.f.epochNow(), now
	g.endedAt, g.loadedAt, g.retryAt = time.Time{}, time.Time{}, time.Time{}
	g.after, g.differs, g.trouble, g.isOpen = 0, "", "", false
}

// wait sleeps until the next look.
func (g *gate) wait(ctx context.Context) {
	every := gateEvery
	if g.isOpen {
		every = openEvery
		if g.cfg.AuditEvery > 0 {
			every = max(0, min(every, time.Until(g.auditAt)))
		}
	}
	timer := time.NewTimer(every)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-g.f.wake:
	case <-timer.C:
	}
}

// advance takes one step.
func (g *gate) advance(ctx context.Context, now time.Time) {
	o := g.observe(now)
	s := decide(&o)
	idle := s.act == actWait || now.Before(g.retryAt)
	g.fallBack(!idle && s.act != actSnapshot, now)
	g.say(&o, s, now)
	if idle {
		return
	}
	g.trouble = ""
	if s.act == actSnapshot {
		g.load(ctx)
	} else {
		g.check(ctx, s.act, o.want)
	}
}

func (g *gate) observe(now time.Time) observation {
	o := g.f.observe()
	o.total, o.differs, o.after = g.cfg.Total, g.differs, g.after
	switch {
	case !o.ended:
		g.endedAt = time.Time{} // also when the log is read again for another board
	case g.endedAt.IsZero():
		g.endedAt = now
	default:
		o.endedFor = now.Sub(g.endedAt)
	}
	if o.loaded = !g.loadedAt.IsZero(); o.loaded {
		o.loadedFor = now.Sub(g.loadedAt)
	}
	o.have = g.f.progress()
	return o
}

// say tells the state, which is given up once the time is over.
func (g *gate) say(o *observation, s step, now time.Time) {
	if g.trouble != "" {
		s.reason += " (" + g.trouble + ")"
	}
	waited := now.Sub(g.begun)
	limit := g.cfg.Deadline + time.Duration(g.backlog())*g.cfg.DeadlinePerUpdate
	if o.kafkaKnown && !o.topicKnown {
		limit = min(limit, vacantAfter)
	}
	if waited >= limit {
		s.state, s.reason = rankcache.StateGivenUp, "not open after "+limit.String()+", answered by Redis: "+s.reason
	}
	if g.f.stale.Load() {
		s = g.f.staleStep(s, now)
	}
	g.state(s.state, s.reason, now)
}

func (g *gate) state(state rankcache.BoardState, reason string, now time.Time) {
	if before := g.f.setStatus(state, reason, now); before != state {
		g.log.Info("board", "board", g.f.id, "state", state, "was", before, "reason", reason)
	}
}

// load takes a snapshot. What a later comparison says is about the new one.
func (g *gate) load(ctx context.Context) {
	g.later() // also after a success: loading again at once would not help
	after, err := g.snapshot(ctx)
	if err != nil {
		g.failed(ctx, err.Error())
		return
	}
	g.after, g.loadedAt, g.differs = after, time.Now(), ""
	g.retryAt = time.Time{}
	g.f.nudge()
}

// check compares the board with Redis and opens it if they agree.
func (g *gate) check(ctx context.Context, act action, want uint64) {
	if act != actSettle { // its holes are there to stay
		g.f.hold()
	}
	v := g.compareWith(ctx, act)
	if !v.agrees {
		g.f.letGo()
		g.later()
		g.differs = v.differs
		g.failed(ctx, v.unknown+v.differs)
		return
	}
	if act == actSettle {
		g.f.board.AcceptHoles(want)
	}
	g.f.board.MarkCurrent(v.at) // so that the first answer knows its age
	if g.f.open(g.epoch, g.boards) {
		g.isOpen, g.openedAt, g.doubts = true, time.Now(), nil
		g.auditAt = g.openedAt.Add(time.Duration(rand.Float64() * float64(g.cfg.AuditEvery)))
		g.state(rankcache.StateOpen, "equal to Redis", time.Now())
	}
}

func (g *gate) later() { g.retryAt = time.Now().Add(g.retry.NextBackOff()) }

func (g *gate) failed(ctx context.Context, why string) {
	if ctx.Err() != nil {
		return
	}
	g.trouble = why
	g.log.Warn("board is not open", "board", g.f.id, "reason", why)
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
