package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"rankcache"
)

// Runner keeps a set of boards filled from their log, in Kafka or in Redis. Its methods may be called by any goroutine.
type Runner struct {
	common
	members *membership
	filler  *filler
	asker   *asker
	keeper  *keeperPace
	walks   atomic.Bool // rows are compared, whatever a keeper does
}

// New returns a Runner that starts nothing before Run. It fails if cfg is wrong, or if reg has such metrics already.
func New(cfg Config, boards Boards, origin Origin, log *slog.Logger, reg prometheus.Registerer) (*Runner, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if (cfg.Files != nil || cfg.Snapshots != nil) && cfg.TotalSource != TotalSeq {
		log.Warn("boards are not kept over a restart: without seqs a saved board can't be joined to its log", "total", cfg.TotalSource)
		cfg.Files, cfg.Snapshots = nil, nil
	}
	r := &Runner{keeper: NewPace[map[*feed]probe](rand.Float64), common: common{cfg: cfg, boards: boards, origin: origin, log: log, metrics: newMetrics(),
		topicsWake: newSignal(), totalsWake: newSignal(), written: newWrittenHere()}}
	r.members = newMembership(&r.feeds)
	r.filler, r.asker = newFiller(&r.common), newAsker(origin)
	if reg != nil {
		err = errors.Join(r.metrics.register(reg), reg.Register(newCollector(&r.feeds, cfg.BoardLabel)))
	}
	return r, err
}

// Follow names the boards to keep: new ones are created, filled and opened, those not named any more are dropped. It
// returns at once, may be called before Run, and does not keep the slice.
func (r *Runner) Follow(boards []rankcache.BoardID) { r.members.want(boards) }

// Ready returns whether every board that was wanted at the start is open, answered from its file or given up to Redis,
// and if not, which is not and why. Once true it stays so.
func (r *Runner) Ready() (ready bool, reason string) { return r.members.readiness() }

// Status returns every followed board, sorted by id.
func (r *Runner) Status() []rankcache.BoardStatus {
	boards := r.feeds.sorted()
	all := make([]rankcache.BoardStatus, len(boards))
	for i, f := range boards {
		all[i] = f.describe()
	}
	return all
}

// Run fills boards until ctx ends, and then leaves them as they are. It fails if the Kafka client can't be made or has
// failed for good; a Kafka or a Redis that can't be reached is no error. Run may be called once.
func (r *Runner) Run(ctx context.Context) error {
	source, err := r.newLog()
	if err != nil {
		return err
	}
	queue := newBatches()
	consumer := newConsumer(source, queue)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return consumer.run(ctx) })
	group.Go(func() error { return newDispatcher(&r.common, queue).run(ctx) })
	group.Go(func() error { return source.run(ctx) })
	group.Go(func() error { return newTopicWatcher(&r.common, source, consumer).run(ctx) })
	group.Go(func() error { return newTotalsPoller(&r.common, r.keeper).run(ctx) })
	group.Go(func() error { return r.asker.run(ctx) })
	if r.cfg.AuditRows > 0 && r.cfg.TotalSource == TotalSeq {
		group.Go(func() error { return newWalker(&r.common, r.compares).run(ctx) })
	}
	group.Go(func() error { return r.keepMembership(ctx, group) })
	group.Go(func() error { return logProgress(ctx, &r.feeds, r.log) })
	if r.cfg.Files != nil {
		group.Go(func() error { return r.Save(ctx, r.cfg.Files, r.cfg.SaveEvery) })
	}
	return errors.Join(group.Wait(), source.close())
}

// Save saves each open board to files every so often, if it has changed or its copy there will soon be too old, and
// all of them once more when ctx ends. A board that can't be saved is logged.
func (r *Runner) Save(ctx context.Context, to Files, every time.Duration) error {
	return newSaver(&r.common, to, every).run(ctx)
}

// Walk has rows compared until ctx is done though a keeper publishes states: it is the keeper's.
func (r *Runner) Walk(ctx context.Context) error {
	r.walks.Store(true)
	defer r.walks.Store(false)
	<-ctx.Done()
	return nil
}

// compares returns whether rows are compared with Redis here. A replica is at another state: they are compared where it
// is written to.
func (r *Runner) compares() bool {
	return r.cfg.Reached == nil && (r.walks.Load() || !r.keeper.Expected(time.Now()))
}

// keepMembership starts and drops boards as Follow names them. Gates run in the group.
func (r *Runner) keepMembership(ctx context.Context, group *errgroup.Group) error {
	for {
		for _, gone := range r.members.update(r.cfg.Log, func(id rankcache.BoardID) *followed { return r.start(ctx, group, id) }) {
			gone.stop()
			<-gone.done // otherwise the gate might open the board after it was dropped
			gone.feed.replica.drop()
			r.boards.Drop(gone.feed.id)
			r.log.Info("board is not followed any more", "board", gone.feed.id)
		}
		r.topicsWake.wake()
		r.totalsWake.wake()
		if r.members.changed.wait(ctx, relocateEvery); ctx.Err() != nil {
			return nil
		}
	}
}

// relocateEvery is how often it is looked whether boards' updates are elsewhere, because the classes have changed.
const relocateEvery = 10 * time.Second

// start begins to follow a board.
func (r *Runner) start(ctx context.Context, group *errgroup.Group, id rankcache.BoardID) *followed {
	ctx, stop := context.WithCancel(ctx)
	now, log := time.Now(), r.cfg.Log(id)
	alone := closes(log, r.cfg.TotalSource, now)
	if alone {
		log.Topic = ""
	}
	f := newFeed(id, log, r.boards, &r.held, r.metrics, now)
	f.sources.alone, f.sources.reached, f.sources.logIn = alone, r.cfg.Reached, "Kafka"
	if r.cfg.RedisLog != nil {
		f.sources.logIn = "the log in Redis"
	}
	f.sources.readingLasts = missedReadings * r.cfg.TotalsEvery
	f.restoring.Store(r.filler.hasFiles())
	b := &followed{f, stop, make(chan struct{})}
	group.Go(func() error {
		defer close(b.done)
		defer stop()
		r.filler.fromFiles(ctx, f)
		newGate(&r.common, r.asker, r.filler, f).run(ctx)
		return nil
	})
	return b
}
