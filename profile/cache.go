package profile

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/errgroup"
)

// Cache answers with the profiles of members. All methods may be called
// concurrently, also before Run and after it, when nothing is loaded.
type Cache struct {
	opts    Options
	source  Source
	log     *slog.Logger
	metrics *metrics
	breaker *gobreaker.CircuitBreaker[struct{}]
	// lastErr explains the breaker's change of state in the log.
	lastErr atomic.Value // of error text

	base    time.Time             // all times are kept as durations since then: 8 bytes, and monotonic
	seed    maphash.Seed          // of the keys, so that nobody can choose members that collide
	store   atomic.Pointer[store] // nil until Run, and after Close
	changes changes

	// mu guards everything below and every write to the store.
	mu       sync.Mutex
	flights  map[string]*flight // by member: under way, or lingering
	lingers  []*flight          // those that have landed and linger, in no order
	lingered int                // bytes of the entries among them
	queue    queue
	version  uint32 // of the newest flight
	closed   bool   // Run has returned: nothing will be loaded any more
}

// New returns a cache before source. It starts nothing; until [Cache.Run] is
// running, it knows no profile. A nil logger logs nothing, a nil registerer
// registers nothing.
func New(opts Options, source Source, log *slog.Logger, reg prometheus.Registerer) (*Cache, error) {
	opts = opts.withDefaults()
	if err := opts.check(); err != nil {
		return nil, err
	}
	if source == nil {
		return nil, errors.New("a profile cache needs a source")
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Cache{opts: opts, source: source, log: log, base: time.Now(), seed: maphash.MakeSeed(),
		flights: make(map[string]*flight), queue: newQueue()}
	c.breaker = c.newBreaker()
	c.metrics = newMetrics(reg, c)
	return c, nil
}

// Run loads what pages miss until ctx ends, and then returns nil. Calls that are
// under way are cancelled. What is cached stays readable until [Cache.Close].
func (c *Cache) Run(ctx context.Context) error {
	if err := c.open(); err != nil {
		return err
	}
	return c.serve(ctx)
}

func (c *Cache) open() error {
	s, err := newStore(c.opts.Budget, c.key, c.metrics.evictions.Inc)
	if err != nil {
		return err
	}
	if !c.store.CompareAndSwap(nil, s) {
		s.close()
		return errors.New("profile cache: runs already")
	}
	return nil
}

// serve runs the workers of an open cache.
func (c *Cache) serve(ctx context.Context) error {
	defer c.shut()
	g, ctx := errgroup.WithContext(ctx)
	for range c.opts.Calls {
		g.Go(func() error { return c.work(ctx) })
	}
	g.Go(func() error { return c.sweep(ctx) })
	return g.Wait()
}

// Close gives the memory back after Run has returned, or if it never ran. Nobody
// may be using the cache any more.
func (c *Cache) Close() { c.store.Swap(nil).close() }

func (c *Cache) key(member string) uint64 { return maphash.String(c.seed, member) }

func (c *Cache) now() time.Duration { return time.Since(c.base) }

// hard is when the entry is too old to be served at all.
func (c *Cache) hard(e entry) time.Duration {
	if e.head.json == 0 {
		return e.soft() + c.opts.NegativeTTL
	}
	return e.soft() + c.opts.StaleFor
}
