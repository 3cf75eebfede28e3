package hotkey

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"rankcache"
	"rankcache/internal/tick"
	"rankcache/rooms"
	"rankcache/wire"
)

const second = time.Second // the interval of rolling the counters and stepping the policy

type pageMap = map[rankcache.BoardID]*page // has the pages of the promoted boards. It is never changed, but replaced.

// Tracker counts requests, decides which boards are hot and keeps their pages. Any goroutine may call its methods.
type Tracker struct {
	cfg     Config
	tiers   func() *rooms.Tiers
	open    func(rankcache.BoardID) bool
	log     *slog.Logger
	metrics *metrics

	exchange func(ctx context.Context, report []byte) // nil: none
	own      *OwnRates
	policy   *policy    // only tick uses it
	refresh  *refresher // shares the pages with readers
	rolled   time.Time  // when the counters were last rolled; only tick uses it

	pages   atomic.Pointer[pageMap] // of the promoted boards
	verdict atomic.Pointer[seenVerdict]
	rows    atomic.Pointer[[]Row] // as of the last tick
	misses  atomic.Uint64         // reads of promoted boards without a fresh page
}

// seenVerdict is a verdict and when it was first seen, by this clock: the clock of the poller's host may be off.
type seenVerdict struct {
	Verdict
	seen   time.Time
	listed map[rankcache.BoardID]int64
}

// Deps are the dependencies of a [Tracker].
type Deps struct {
	Origin rankcache.Reader    // of heads
	Tiers  func() *rooms.Tiers // returns the operator's current tiers; it may return nil
	// Open reports whether a super-hot board is answered from its local copy, so that it needs no page. nil: none is.
	Open func(rankcache.BoardID) bool
	// Exchange is called once a second, before the policy decides, with the report of what is read here, nil if nobody
	// asks for one: it passes the newest verdict to Observe, and returns soon. nil: there is no fleet.
	Exchange func(ctx context.Context, report []byte)
	// Changed is called when the page of a board was read and is another one. It must return at once; nil: not wanted.
	Changed func(rankcache.BoardID)
	// Histories returns for each board a name of what its server has been through, another one after it has lost
	// something; nil: boards that Redis has lost are not told from those that were deleted.
	Histories func(ctx context.Context, boards []rankcache.BoardID, now bool) ([]string, error)
	Log       *slog.Logger
	Registry  prometheus.Registerer
}

// New returns a tracker with nothing promoted. It starts nothing. The error is cfg's, see [Config.Check].
func New(cfg Config, deps Deps) (*Tracker, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	if deps.Open == nil {
		deps.Open = func(rankcache.BoardID) bool { return false }
	}
	t := &Tracker{cfg: cfg, tiers: deps.Tiers, open: deps.Open, exchange: deps.Exchange, log: deps.Log,
		own: NewOwnRates(cfg.PromoteRate), policy: newPolicy(cfg)}
	t.metrics = newMetrics(deps.Registry, t)
	t.refresh = &refresher{cfg: cfg, origin: deps.Origin, log: deps.Log, metrics: t.metrics, changed: deps.Changed,
		histories: deps.Histories, woken: make(chan struct{}, 1)}
	t.pages.Store(&pageMap{})
	t.verdict.Store(&seenVerdict{})
	t.rows.Store(&[]Row{})
	return t, nil
}

// Count adds one request for the board, whichever tier answers it. It keeps no reference to the id's memory.
func (t *Tracker) Count(board rankcache.BoardID) { t.own.Count(board) }

// Read implements [rankcache.Reader]: what pages have, [rankcache.ErrNotKept] where none is, or it is too old.
func (t *Tracker) Read(_ context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	for i := range qs {
		p := (*t.pages.Load())[qs[i].Board]
		if p == nil {
			as[i].Fail(rankcache.ErrNotKept)
		} else if h := p.read(time.Now(), t.cfg.Stale); h != nil {
			h.top.Answer(&qs[i], &as[i], h.at)
		} else {
			t.misses.Add(1)
			as[i].Fail(rankcache.ErrNotKept)
		}
	}
}

// Take takes Redis's answer to a query that its page lacked. An older page is replaced: no board steps back.
func (t *Tracker) Take(q *rankcache.Query, a *rankcache.Answer) {
	head := q.Start == 0 && q.Range == nil && q.Limit > 0 && q.Limit <= t.cfg.Entries && q.Order == rankcache.Descending
	if p := (*t.pages.Load())[q.Board]; p != nil && head && !q.Bounded() && a.Err == nil && a.Source == rankcache.SourceRedis {
		t.refresh.take(p, a)
	}
}

// Written tells that a board's page is behind Redis, as after a write through this process: it is read again at once,
// every 50 ms at most. The channel is closed when that has ended, also by an error; nil: the board has no page.
func (t *Tracker) Written(board rankcache.BoardID) <-chan struct{} {
	if p := (*t.pages.Load())[board]; p != nil {
		return t.refresh.soon(p)
	}
	return nil
}

// Kept calls fn with each page, also those too old to be served, and when it was last known to be current.
func (t *Tracker) Kept(fn func(top *rankcache.Top, currentAt time.Time)) {
	for _, p := range *t.pages.Load() {
		if h := p.cached.Load(); h != nil {
			fn(h.top, h.at)
		}
	}
}

// Observe takes the newest verdict. The age of a verdict counts from when it was first observed.
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

// Verdict returns the newest verdict and when it was first seen, by this clock; zero before the first.
func (t *Tracker) Verdict() (v Verdict, seen time.Time) {
	s := t.verdict.Load()
	return s.Verdict, s.seen
}

// Run promotes and demotes boards once a second and refreshes pages until ctx is done; it returns nil.
func (t *Tracker) Run(ctx context.Context) error {
	var loops errgroup.Group
	loops.Go(func() error { return t.refresh.run(ctx, func() pageMap { return *t.pages.Load() }) })
	loops.Go(func() error { return t.decide(ctx) })
	return loops.Wait()
}

func (t *Tracker) decide(ctx context.Context) error {
	t.rolled = time.Now()
	for range tick.Every(ctx, second) {
		t.tick(ctx, time.Now())
	}
	return nil
}

// tick ends a second: it rolls the counters, tells the fleet, steps the policy and publishes the pages.
func (t *Tracker) tick(ctx context.Context, now time.Time) {
	elapsed := max(now.Sub(t.rolled), second/2) // a late tick is followed by an early one
	t.rolled = now
	tiers := t.tiers()
	barred := func(b rankcache.BoardID) bool { return tiers.Mode(b, "") == rooms.ModeBlocked || t.open(b) }
	busy := t.own.Roll(elapsed)
	if t.exchange != nil {
		t.exchange(ctx, t.report(now, barred))
	}
	transitions := t.policy.step(now, observation{
		busy:   busy,
		rate:   t.own.Rate,
		listed: t.listed(now),
		pinned: tiers.Boards(rooms.ModeHot),
		barred: barred,
	})
	t.metrics.countHits(*t.pages.Load())
	t.apply(now, transitions)
	t.publishRows()
}

// OfFleet reports whether there is a verdict that is made of what sidecars report, and not too old.
func (t *Tracker) OfFleet() bool { return t.ofFleet(time.Now()) }

func (t *Tracker) ofFleet(now time.Time) bool {
	v := t.verdict.Load()
	return v.Source == SourceFleet && now.Sub(v.seen) <= VerdictAge
}

// report returns what is read here, for a verdict made of it; nil if there is none, or nothing to tell.
func (t *Tracker) report(now time.Time, barred func(rankcache.BoardID) bool) []byte {
	if !t.ofFleet(now) {
		return nil
	}
	boards := t.own.Report(func(b rankcache.BoardID) bool { return !barred(b) })
	if len(boards) == 0 {
		return nil
	}
	return wire.AppendReads(nil, uint64(now.UnixMilli()), boards) // #nosec G115 -- after 1970
}

// listed returns the boards of the verdict unless it is too old.
func (t *Tracker) listed(now time.Time) map[rankcache.BoardID]int64 {
	v := t.verdict.Load()
	if now.Sub(v.seen) > VerdictAge {
		return nil
	}
	return v.listed
}

// apply publishes the pages after the transitions.
func (t *Tracker) apply(now time.Time, transitions []transition) {
	if len(transitions) == 0 {
		return
	}
	pages := maps.Clone(*t.pages.Load())
	for _, c := range transitions {
		t.metrics.countTransition(c)
		if c.cause == "" {
			delete(pages, c.board)
			t.log.Info("hot board demoted", "board", c.board, "reason", c.reason)
			continue
		}
		p := &page{board: c.board}
		p.lastRead.Store(now.UnixNano()) // not idle: the refresher reads it at once
		pages[c.board] = p
		t.log.Info("board promoted to hot", "board", c.board, "cause", c.cause, "flip", c.flip)
	}
	t.pages.Store(&pages)
}

// State is a board's state.
type State string

// States of a [Row].
const (
	StateHot     State = "hot"     // promoted
	StateCooling State = "cooling" // demoted recently, not promoted again yet
	StateWatched State = "watched" // busy or listed, not promoted
	StateBarred  State = "barred"  // would be hot, but is blocked or super-hot and open
)

// Row is one board as shown to operators.
type Row struct {
	Board    rankcache.BoardID `json:"board"`
	State    State             `json:"state"`
	Cause    Cause             `json:"cause,omitempty"`
	Since    time.Time         `json:"since,omitzero"` // of the state; zero for a watched board
	Rate     float64           `json:"rate"`           // own requests/s over 10 seconds
	APICount int64             `json:"api_count"`      // of the verdict, in the unit of its source
	PageAge  int64             `json:"page_age_ms"`    // ms since the page was current; -1 without a page
	Hits     uint64            `json:"hits"`           // reads answered from the page since the promotion
}

// Hot returns the boards that are or may become hot, hottest first. The caller owns the slice.
func (t *Tracker) Hot() []Row {
	rows := slices.Clone(*t.rows.Load())
	pages, now := *t.pages.Load(), time.Now()
	for i := range rows {
		rows[i].PageAge = -1
		p := pages[rows[i].Board]
		if p == nil {
			continue
		}
		rows[i].Hits = p.hits.Load()
		if h := p.cached.Load(); h != nil {
			rows[i].PageAge = now.Sub(h.at).Milliseconds()
		}
	}
	return rows
}

// Members returns the number of members of each hot board, as of its latest page. The caller owns the map.
func (t *Tracker) Members() map[rankcache.BoardID]int {
	members := make(map[rankcache.BoardID]int)
	for id, p := range *t.pages.Load() {
		if h := p.cached.Load(); h != nil {
			members[id] = h.top.Members
		}
	}
	return members
}

// publishRows publishes the policy's state of this second for Hot.
func (t *Tracker) publishRows() {
	rows := make([]Row, 0, len(t.policy.boards))
	for _, c := range t.policy.boards {
		if c.state() != "" {
			rows = append(rows, Row{Board: c.board, State: c.state(), Cause: c.cause, Since: c.since,
				Rate: c.rates.mean(), APICount: c.count})
		}
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.Board, b.Board))
	})
	t.rows.Store(&rows)
}

func (t *Tracker) oldestPage() (oldest time.Duration) {
	now := time.Now()
	for _, p := range *t.pages.Load() {
		if h := p.cached.Load(); h != nil {
			oldest = max(oldest, now.Sub(h.at))
		}
	}
	return oldest
}

func (t *Tracker) verdictAge() float64 {
	v := t.verdict.Load()
	if v.seen.IsZero() {
		return -1
	}
	return time.Since(v.seen).Seconds()
}
