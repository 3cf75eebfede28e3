package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"

	"rankcache"
)

const (
	// maxMemoryWait is how long a gate waits for memory before it looks at its deadline.
	maxMemoryWait  = 5 * time.Second
	lookAgainEvery = 200 * time.Millisecond // how often a gate looks whether Redis has come to its board's state
)

// opener takes the steps by which a gate's board is filled and opened.
type opener struct {
	feed     *feed
	replica  *replica
	origin   Origin
	ask      *asker
	compare  *comparer
	filler   *filler
	maxStale time.Duration
	metrics  *metrics
	log      *slog.Logger

	attempt
	retry *backoff.ExponentialBackOff // kept over epochs
}

// attempt has a gate's findings in one epoch.
type attempt struct {
	epoch    int
	begun    time.Time
	endedAt  time.Time // when the log was read; zero before
	loadedAt time.Time // when the board was loaded from Redis; zero if it was not
	after    uint64    // the total read after that load
	differs  string    // how the board was found to be wrong
	prover   *prover   // compares the board with Redis; nil before
	// asked is where Redis was when an update had been refuted; suspected is set until that is compared.
	suspected bool
	asked     reading
	// unequal is how the board differed after a load. sumWrong is set when a second load
	// differed in the same way: then Redis's own sum is wrong.
	unequal  inequality
	sumWrong bool
	askedFor time.Time // when the writers were last asked to add up the board anew
	trouble  string    // why the last action failed
	isOpen   bool
	openedAt time.Time
	retryAt  time.Time // no action before it
}

func (g *opener) later() { g.retryAt = time.Now().Add(g.retry.NextBackOff()) }

func (g *opener) failed(ctx context.Context, why string) {
	if ctx.Err() != nil {
		return
	}
	g.trouble = why
	g.log.Warn("board is not open", "board", g.feed.id, "reason", why)
}

func (g *opener) changeState(state rankcache.BoardState, reason string, now time.Time) {
	if before := g.feed.status.set(state, reason, now); before != state {
		g.log.Info("board", "board", g.feed.id, "state", state, "was", before, "reason", reason)
	}
}

// load fills the board from Redis.
func (g *opener) load(ctx context.Context) {
	done, ok := g.reserve(ctx)
	if !ok {
		return
	}
	defer done()
	after, err := g.filler.fromRedis(ctx, g.replica, g.epoch)
	if err != nil {
		g.later()
		g.failed(ctx, err.Error())
		return
	}
	g.after, g.loadedAt, g.differs = after, time.Now(), "" // a difference was of the replaced members
	g.retryAt = time.Time{}
	g.replica.wake.wake()
}

// reserve waits for memory to fill the board. It returns false after some time, so that a
// board is given up by its deadline, and tries again at the next step.
func (g *opener) reserve(ctx context.Context) (done func(), ok bool) {
	ctx, cancel := context.WithTimeout(ctx, maxMemoryWait)
	defer cancel()
	done, err := g.filler.reserve(ctx, g.feed.id)
	if err != nil {
		g.trouble = "waits for memory: other boards are being filled"
	}
	return done, err == nil
}

// tryOpen compares the board with Redis and opens it if they agree.
func (g *opener) tryOpen(ctx context.Context) {
	done, ok := g.reserve(ctx) // the first publication sorts the board
	if !ok {
		return
	}
	defer done()
	g.replica.startOrdering()
	current := g.feed.sources.current()
	v := g.compare.beforeOpening(ctx, g.epoch)
	if !v.agrees {
		g.replica.stopOrdering()
		g.later()
		g.differs = v.differs
		g.failed(ctx, v.unknown+v.differs)
		return
	}
	g.replica.boards.Prepare(ctx, g.replica.board)
	if g.replica.open(g.epoch, opening{equalAt: current}) {
		g.opened("a sample is equal to Redis")
	}
}

func (g *opener) opened(reason string) {
	g.isOpen, g.openedAt = true, time.Now()
	g.changeState(rankcache.StateOpen, reason, g.openedAt)
}

// prove compares checksums with Redis and opens the board when they are equal.
func (g *opener) prove(ctx context.Context) {
	if g.prover == nil {
		p, err := aim(ctx, g.ask, g.feed, g.epoch)
		if late, ok := errors.AsType[*lateError](err); ok { // what the log gives further goes on waiting
			g.retryAt, g.trouble = time.Now().Add(lookAgainEvery), late.Error()
			return
		}
		if err != nil {
			g.replica.stopOrdering()
			g.later()
			g.failed(ctx, "compare with Redis: "+err.Error())
			return
		}
		g.prover = p
	}
	switch p := g.prover; p.step() {
	case proofWaits:
		return
	case proofEqual:
		g.openProved(ctx, p)
	case proofDiffers:
		g.differed(ctx, p)
	}
	if g.prover = nil; !g.isOpen {
		g.replica.stopOrdering()
	}
}

// openProved opens a board that is equal to Redis. It is sorted, and its profiles are
// loaded, before: what the dispatcher has for it waits meanwhile.
func (g *opener) openProved(ctx context.Context, p *prover) {
	if err := p.renew(ctx, g.ask, g.epoch); err != nil {
		g.later()
		g.failed(ctx, "compare with Redis: "+err.Error())
		return
	}
	done, ok := g.reserve(ctx)
	if !ok {
		return
	}
	defer done()
	g.replica.boards.Prepare(ctx, g.replica.board)
	if g.replica.open(g.epoch, opening{equalAt: p.target.current, equalTo: &p.target.State, life: p.target.life}) {
		g.opened("equal to Redis")
	}
}

// openEmpty opens a board that has no change yet. A change after Redis was read has its
// update behind what was read of the log, and the run of that is the board's.
func (g *opener) openEmpty(ctx context.Context) {
	at, err := g.ask.read(ctx, g.feed.id, &g.feed.sources)
	if err != nil {
		g.later()
		g.failed(ctx, "compare with Redis: "+err.Error())
		return
	}
	if at.Run != 0 || at.Seq != 0 || at.members != 0 {
		g.replica.learn(at, g.epoch)
		return
	}
	g.replica.board.Sum() // of no member
	g.replica.boards.Prepare(ctx, g.replica.board)
	if g.replica.open(g.epoch, opening{equalAt: at.current, equalTo: &rankcache.State{HasSum: true}}) {
		g.opened("empty, as in Redis")
	}
}

// inequality is how a board differed from Redis after it was loaded from there.
type inequality struct {
	difference uint64
	server     string
}

// differed has the board loaded from Redis. If it was, twice from the same server, and differs in the same way, then
// Redis's own sum is wrong: a score was changed past the writer.
func (g *opener) differed(ctx context.Context, p *prover) {
	g.differs = "the members don't add up to Redis's checksum at update " + strconv.FormatUint(p.target.Seq, 10)
	g.failed(ctx, g.differs)
	if g.loadedAt.IsZero() {
		if g.feed.file.entries.Load() != nil {
			g.feed.audit.voidFile(kindProof)
		}
		return
	}
	g.later()
	if g.replica.progress().Contiguous < p.target.Seq { // an update is missing, which tells nothing of Redis's sum
		return
	}
	server, err := g.origin.ServerID(ctx, g.feed.id)
	is := inequality{p.difference(), server}
	if err == nil && g.unequal == is {
		g.log.Error("redis's own checksum of a board is wrong: a score was changed past the writer", "board", g.feed.id)
		g.metrics.sumWrong.Inc()
		g.sumWrong, g.differs = true, ""
	}
	g.unequal = is
}

// confirm asks Redis once about a board that refuted an update: if they agree at a
// common seq the update was of another history, and the board is read again.
func (g *opener) confirm(ctx context.Context, now time.Time) {
	have := g.replica.board.State()
	if g.asked.requested.IsZero() {
		if now.Before(g.retryAt) {
			return
		}
		asked, err := g.ask.read(ctx, g.feed.id, &g.feed.sources)
		if err != nil {
			g.later()
			g.failed(ctx, "compare with Redis: "+err.Error())
			return
		}
		if late := g.replica.late(asked.State); late != nil { // the totals poller compares them, and finds out whether it is late for ever
			g.retryAt, g.trouble = now.Add(lookAgainEvery), late.Error()
			return
		}
		if why := disproof(asked.State, have); why != nil {
			g.replica.report(g.epoch, *why)
			return
		}
		g.asked = asked
	}
	switch sum, known := g.replica.board.SumAt(g.asked.Run, g.asked.Seq); {
	case known && g.replica.reopen(g.epoch, g.asked.State, g.asked.current):
		g.metrics.foreignHistory.Inc()
		g.suspected = false
		g.opened("equal to Redis; an update of another history was dropped")
	case known:
		g.replica.report(g.epoch, faultSum(g.asked.State, sum))
	case g.asked.Seq < have.Seq, now.Sub(g.asked.requested) >= confirmFor:
		g.replica.report(g.epoch, fault{kind: kindSum, counted: true,
			reason: fmt.Sprintf("the board is at update %d and can't be compared with Redis at %d", have.Seq, g.asked.Seq)})
	}
}

// fallBack makes a board that was filled from its file readable before it is opened, or closes it again. It is read
// with the file's age and only while Redis can't answer: a copy that was not compared is better than a failed read, and
// worse than Redis. It never counts as open: it is not marked as current and not saved, and once Redis answers it is
// compared and opened, or closed. If comparing, it is left as it is until the comparison has ended.
func (g *opener) fallBack(ctx context.Context, comparing bool, now time.Time) {
	wanted := g.feed.sources.redisAway() && g.feed.file.isYounger(now, g.maxStale)
	if wanted && !g.replica.stale.Load() {
		g.replica.boards.Prepare(ctx, g.replica.board)
	}
	switch {
	case wanted && g.replica.openStale(g.epoch):
		g.metrics.stales.Inc()
		g.log.Warn("board is answered from its file: Redis does not answer", "board", g.feed.id)
	case !wanted && !comparing && g.replica.closeStale():
		g.log.Info("board is not answered from its file any more", "board", g.feed.id)
	}
}
