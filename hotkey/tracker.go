package hotkey

import (
	"context"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"rankcache"
	"rankcache/rooms"
)

// second is how often the counters are rolled and the policy is asked.
const second = time.Second

// pageMap is the promoted boards; a new one is published at every change.
type pageMap = map[rankcache.BoardID]*page

// Tracker counts the requests of every board, decides which are hot and holds
// their pages. Count, Top, Hot and Observe may be called by any goroutine; Run
// is called once.
type Tracker struct {
	cfg     Config
	tiers   func() *rooms.Tiers
	open    func(rankcache.BoardID) bool
	log     *slog.Logger
	metrics *metrics

	own     *Self
	pinned  *Static
	policy  *policy    // only tick uses it
	refresh *refresher // shares the pages with readers
	rolled  time.Time  // when the counters were last rolled; only tick uses it

	pages   atomic.Pointer[pageMap] // promoted boards; the map is never changed
	verdict atomic.Pointer[seenVerdict]
	rows    atomic.Pointer[[]Row] // as of the last tick
	misses  atomic.Uint64         // reads of promoted boards without a fresh page
}

// seenVerdict is a verdict and when it was first seen, by this clock: the clock
// of the poller's host may be off.
type seenVerdict struct {
	Verdict
	seen   time.Time
	listed map[rankcache.BoardID]int64
}

// Parts are what a Tracker is given.
type Parts struct {
	Origin Origin
	// Tiers returns what the operator says now; nil counts as nothing said.
	Tiers func() *rooms.Tiers
	// Open reports whether a super-hot board is answered from its whole local
	// copy; such a board needs no page. Nil: none is.
	Open     func(rankcache.BoardID) bool
	Log      *slog.Logger
	Registry prometheus.Registerer
}

// New returns a tracker with nothing promoted. It starts nothing. The error is
// cfg's, see [Config.Check].
func New(cfg Config, parts Parts) (*Tracker, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	if parts.Open == nil {
		parts.Open = func(rankcache.BoardID) bool { return false }
	}
	t := &Tracker{cfg: cfg, tiers: parts.Tiers, open: parts.Open, log: parts.Log,
		own: newSelf(cfg.PromoteRate), pinned: NewStatic(parts.Tiers), policy: newPolicy(cfg)}
	t.metrics = newMetrics(parts.Registry, t)
	t.refresh = &refresher{cfg: cfg, origin: parts.Origin, log: parts.Log, metrics: t.metrics}
	t.pages.Store(&pageMap{})
	t.verdict.Store(&seenVerdict{})
	t.rows.Store(&[]Row{})
	return t, nil
}

// Count adds one request for the board, whoever answers it. It keeps no
// reference to the id's memory.
func (t *Tracker) Count(board rankcache.BoardID) { t.own.counters.count(board) }

// Top returns the board's page and when it was last known to be current. ok is
// false when the board is not promoted or its page is missing or too old; Redis
// then has to answer.
func (t *Tracker) Top(board rankcache.BoardID) (top *rankcache.Top, currentAt time.Time, ok bool) {
	p := (*t.pages.Load())[board]
	if p == nil {
		return nil, time.Time{}, false
	}
	h := p.read(time.Now(), t.cfg.Stale)
	if h == nil {
		t.misses.Add(1)
		return nil, time.Time{}, false
	}
	return h.top, h.at, true
}

// Observe takes the newest verdict that was read. One that was seen before
// counts from when it was first seen.
func (t *Tracker) Observe(v Verdict) {
	old := t.verdict.Load()
	if old.Verdict.same(v) {
		return
	}
	s := &seenVerdict{Verdict: v, seen: time.Now(), listed: make(map[rankcache.BoardID]int64, len(v.Boards))}
	for _, b := range v.Boards {
		s.listed[b.Board] = b.Count
	}
	t.verdict.Store(s)
}

// Verdict returns the newest verdict and when it was first seen, by this clock;
// zero before the first.
func (t *Tracker) Verdict() (v Verdict, seen time.Time) {
	s := t.verdict.Load()
	return s.Verdict, s.seen
}

// Run decides once a second and refreshes pages until ctx is done; it returns
// nil.
func (t *Tracker) Run(ctx context.Context) error {
	var loops errgroup.Group
	loops.Go(func() error { return t.refresh.run(ctx, func() pageMap { return *t.pages.Load() }) })
	loops.Go(func() error { return t.decide(ctx) })
	return loops.Wait()
}

func (t *Tracker) decide(ctx context.Context) error {
	t.rolled = time.Now()
	tick := time.NewTicker(second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			t.tick(time.Now())
		}
	}
}

// tick ends a second: roll the counters, ask the policy, publish the pages.
func (t *Tracker) tick(now time.Time) {
	elapsed := max(now.Sub(t.rolled), second/2) // a late tick is followed by an early one
	t.rolled = now
	tiers := t.tiers()
	changes := t.policy.step(now, observation{
		busy:   t.own.roll(elapsed),
		rate:   t.own.Rate,
		listed: t.listed(now),
		pinned: t.pinned.boards(),
		barred: func(b rankcache.BoardID) bool { return tiers.Mode(b, "") == rooms.ModeBlocked || t.open(b) },
	})
	t.metrics.countHits(*t.pages.Load())
	t.apply(now, changes)
	t.publishRows()
}

// listed returns the boards of the verdict while it counts.
func (t *Tracker) listed(now time.Time) map[rankcache.BoardID]int64 {
	v := t.verdict.Load()
	if now.Sub(v.seen) > t.cfg.VerdictAge {
		return nil
	}
	return v.listed
}

// apply publishes the map of pages after the changes.
func (t *Tracker) apply(now time.Time, changes []change) {
	if len(changes) == 0 {
		return
	}
	pages := maps.Clone(*t.pages.Load())
	for _, c := range changes {
		t.metrics.change(c)
		if c.cause == "" {
			delete(pages, c.board)
			t.log.Info("hot board demoted", "board", c.board, "reason", c.reason)
			continue
		}
		p := &page{board: c.board}
		p.asked.Store(now.UnixNano()) // read it at once, its readers are there
		pages[c.board] = p
		t.log.Info("board promoted to hot", "board", c.board, "cause", c.cause, "flip", c.flip)
	}
	t.pages.Store(&pages)
}
