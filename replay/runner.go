package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"rankcache"
)

// Runner keeps a set of boards filled from Kafka.
type Runner struct {
	cfg     Config
	boards  Boards
	origin  Origin
	log     *slog.Logger
	metrics *metrics

	// routes is what followers are found by without the lock.
	routes atomic.Pointer[routes]
	// backlog is how many records the logs held when their reading began.
	backlog atomic.Int64

	rosterKick, catalogueKick, totalsKick chan struct{}
	loads                                 chan struct{} // room for loadsAtOnce

	mu     sync.Mutex // before a follower's
	wanted []rankcache.BoardID
	named  bool // Follow was called
	seats  map[rankcache.BoardID]*seat
	// atStart are the boards wanted when the first were followed: readiness waits
	// for them, and once it came it stays.
	atStart []rankcache.BoardID
	started bool
	ready   bool
}

// New returns a Runner that starts nothing before Run. The error says what is
// wrong with cfg, or that reg has such metrics already.
func New(cfg Config, boards Boards, origin Origin, log *slog.Logger, reg prometheus.Registerer) (*Runner, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if cfg.Files != nil && cfg.Total != TotalSeq {
		log.Warn("boards are not kept over a restart: without seqs a saved board can't be joined to its log", "total", cfg.Total)
		cfg.Files = nil
	}
	r := &Runner{cfg: cfg, boards: boards, origin: origin, log: log, seats: make(map[rankcache.BoardID]*seat)}
	r.routes.Store(&routes{})
	r.rosterKick, r.catalogueKick, r.totalsKick = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	r.loads = make(chan struct{}, loadsAtOnce)
	r.metrics = newMetrics()
	if reg != nil {
		err = errors.Join(r.metrics.register(reg), reg.Register(collector{r}))
	}
	return r, err
}

// Run fills boards until ctx ends, and then leaves them as they are. The error
// says that the Kafka client could not be made, or will never work again; a Kafka
// or a Redis that is away is no error. Run may be called once.
func (r *Runner) Run(ctx context.Context) error {
	c, err := newClient(r.cfg, r.log)
	if err != nil {
		return err
	}
	ring := newBatches()
	read := newReader(c, ring, r.metrics, r.log)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return read.run(ctx) })
	group.Go(func() error { return newPump(r, ring).run(ctx) })
	group.Go(func() error { return newCatalogue(r, c, read).run(ctx) })
	group.Go(func() error { return newTotals(r).run(ctx) })
	group.Go(func() error { return r.keepRoster(ctx, group) })
	group.Go(func() error { return r.narrate(ctx) })
	group.Go(func() error { return r.keepFiles(ctx) })
	return errors.Join(group.Wait(), c.close())
}

// Settled says whether every board that was wanted at the start is open or has
// been given up to Redis, and if not, which is not and why. Once it is true it
// stays so. It may be called by any goroutine.
func (r *Runner) Settled() (ready bool, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ready {
		return true, ""
	}
	if !r.started {
		return false, "the boards to follow are not known yet"
	}
	missing := r.unsettled()
	if r.ready = len(missing) == 0; r.ready {
		return true, ""
	}
	return false, fmt.Sprintf("%d of %d boards are not open: %s", len(missing), len(r.atStart), firstFew(missing))
}

// unsettled tells of each board that readiness waits for. One that is not
// followed any more is not waited for. The lock is held.
func (r *Runner) unsettled() (missing []string) {
	for _, id := range r.atStart {
		if s := r.seats[id]; s != nil && !s.f.settled() {
			missing = append(missing, summary(s.f.describe()))
		}
	}
	return missing
}

func firstFew(all []string) string {
	const few = 3
	if len(all) > few {
		return strings.Join(all[:few], "; ") + "; …"
	}
	return strings.Join(all, "; ")
}

// summary is a board's status in a line.
func summary(s rankcache.BoardStatus) string {
	return fmt.Sprintf("%s is %s %d/%d (%s)", s.Board, s.State, s.Have, s.Want, s.Reason)
}

// followers returns the followed boards, sorted by id.
func (r *Runner) followers() []*follower {
	now := *r.routes.Load()
	return slices.SortedFunc(maps.Values(now), func(a, b *follower) int {
		return strings.Compare(string(a.id), string(b.id))
	})
}
