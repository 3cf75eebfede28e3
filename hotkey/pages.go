package hotkey

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/internal/tick"
)

// page is the local top page of one promoted board. read may be called by any
// goroutine; what writes holds the refresher's lock.
type page struct {
	board    rankcache.BoardID
	cached   atomic.Pointer[cachedTop] // nil: nothing read yet, or dropped when idle
	lastRead atomic.Int64              // Unix ns of the last read, to about readGrain
	hits     atomic.Uint64             // reads answered from this page

	// Guarded by the refresher's lock.
	inFlight bool      // being read from Redis
	due      time.Time // when to read it next
	fails    int       // failed reads in a row

	history historyOf // of the fetch alone, as is lost: Redis has lost the board, which was told
	lost    bool
}

// cachedTop is a page, when it was last known to equal Redis, and when Redis had answered it.
type cachedTop struct {
	top          *rankcache.Top
	at, answered time.Time
}

// readGrain limits how often readers of one page write the same cache line.
const readGrain = int64(100 * time.Millisecond)

// read returns the cached page, nil when Redis has not answered it for stale, and records the
// time of the read.
func (p *page) read(now time.Time, stale time.Duration) *cachedTop {
	if ns := now.UnixNano(); ns-p.lastRead.Load() > readGrain {
		p.lastRead.Store(ns)
	}
	h := p.cached.Load()
	if h == nil || now.Sub(h.answered) > stale {
		return nil
	}
	p.hits.Add(1)
	return h
}

// idle reports whether the page was not read recently.
func (p *page) idle(now time.Time, after time.Duration) bool {
	return now.UnixNano()-p.lastRead.Load() > int64(after)
}

// publish replaces the cached page by top, whose reading began at a time and which is known to be current at at. An unchanged
// page keeps its pointer, so that its encoded pages stay valid. A page of a later state
// that Redis answered since then stays; replaced is false.
func (p *page) publish(top *rankcache.Top, began, at time.Time) (replaced, changed bool) {
	old := p.cached.Load()
	if old != nil && !began.After(old.answered) && top.State.Before(old.top.State) {
		return false, false
	}
	if changed = old == nil || !sameTop(old.top, top); !changed {
		top = old.top
	}
	p.cached.Store(&cachedTop{top, at, time.Now()})
	return true, changed
}

// sameTop reports whether two pages of a board are equal, their states included.
func sameTop(a, b *rankcache.Top) bool {
	if a.State != b.State || a.Life != b.Life || a.Primed != b.Primed || a.Members != b.Members || len(a.Entries) != len(b.Entries) {
		return false
	}
	for i := range a.Entries {
		if a.Entries[i] != b.Entries[i] {
			return false
		}
	}
	return true
}

const (
	// refreshTick is the interval of looking for due pages. Pages that become due
	// in one interval share a pipeline.
	refreshTick = 50 * time.Millisecond
	// maxBatch bounds one pipeline: 64 pages of 100 entries are about 200 KB.
	maxBatch = 64
	// retryFirst is the pause after a page's first failed read; it doubles up
	// to the refresh interval.
	retryFirst = 100 * time.Millisecond
)

// refresher reads the pages of promoted boards from Redis: a page is read by one
// fetch at a time, pages due together in one pipeline.
type refresher struct {
	cfg     Config
	origin  rankcache.Reader
	log     *slog.Logger
	metrics *metrics
	changed func(rankcache.BoardID) // see [Deps]
	// histories is that of [Deps].
	histories func(context.Context, []rankcache.BoardID) ([]string, error)

	mu      sync.Mutex  // guards the scheduling fields of all pages; nothing is called under it
	failing atomic.Bool // the last fetch failed, which was logged
}

// run fetches due pages until ctx is done, then waits for its fetches.
func (r *refresher) run(ctx context.Context, pages func() pageMap) error {
	var fetches sync.WaitGroup
	defer fetches.Wait()
	for range tick.Every(ctx, refreshTick) {
		for _, batch := range r.due(time.Now(), pages()) {
			fetches.Go(func() { r.fetch(ctx, batch) })
		}
	}
	return nil
}

// due returns the pages to read now, in batches, and empties idle pages, so that the
// next reader does not get an old one.
func (r *refresher) due(now time.Time, pages pageMap) (batches [][]*page) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var batch []*page
	for _, p := range pages {
		if p.inFlight || p.due.After(now) {
			continue
		}
		if p.idle(now, Idle) {
			p.cached.Store(nil)
			continue
		}
		p.inFlight = true
		if batch = append(batch, p); len(batch) == maxBatch {
			batches, batch = append(batches, batch), nil
		}
	}
	if len(batch) > 0 {
		batches = append(batches, batch)
	}
	return batches
}

// fetch reads the pages of a batch from Redis.
func (r *refresher) fetch(ctx context.Context, batch []*page) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	boards := make([]rankcache.BoardID, len(batch))
	for i, p := range batch {
		boards[i] = p.board
	}
	histories := r.historiesBefore(ctx, batch, boards)
	begin := time.Now()
	tops, current, err := r.read(ctx, batch)
	r.keepLost(ctx, batch, tops, histories)
	r.complete(batch, tops, current, begin)
	r.logOutcome(ctx, err)
}

// read returns the head of each board, nil for those that could not be read, and when they are known to be current; and why not. A replica of
// Redis that is behind a page is not asked for it: its bound is the state that it has, or its age.
func (r *refresher) read(ctx context.Context, batch []*page) (tops []*rankcache.Top, current []time.Time, err error) {
	qs, as := make([]rankcache.Query, len(batch)), make([]rankcache.Answer, len(batch))
	for i, p := range batch {
		qs[i] = rankcache.Query{Board: p.board, Limit: r.cfg.Entries}
		if old := p.cached.Load(); old != nil {
			qs[i].MinState = old.top.State
			if old.top.Run == 0 { // its state tells nothing
				qs[i].MaxAge = max(time.Since(old.at), 1)
			}
		}
	}
	r.origin.Read(ctx, qs, as)
	tops, current = make([]*rankcache.Top, len(batch)), make([]time.Time, len(batch))
	for i := range as {
		if err = cmp.Or(err, as[i].Err); as[i].Err == nil {
			tops[i], current[i] = rankcache.TopOf(batch[i].board, &as[i]), as[i].CurrentAt
		}
	}
	return tops, current, err
}

// complete publishes the pages of a fetch that started at begin. The whole batch is
// due again at one time, so that it stays together.
func (r *refresher) complete(batch []*page, tops []*rankcache.Top, current []time.Time, begin time.Time) {
	changed := r.publish(batch, tops, current, begin)
	for i := 0; i < len(changed) && r.changed != nil; i++ {
		r.changed(changed[i])
	}
}

// publish returns the boards whose pages have changed.
func (r *refresher) publish(batch []*page, tops []*rankcache.Top, current []time.Time, begin time.Time) (changed []rankcache.BoardID) {
	next := begin.Add(tick.Jitter(r.cfg.Refresh))
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, p := range batch {
		p.inFlight = false
		if i < len(tops) && tops[i] != nil {
			p.fails, p.due = 0, next
			replaced, other := p.publish(tops[i], begin, current[i])
			if other {
				changed = append(changed, p.board)
			}
			if !replaced {
				p.due = now
			}
			r.metrics.refreshes.WithLabelValues("ok").Inc()
			continue
		}
		p.due = now.Add(tick.Jitter(min(retryFirst<<min(p.fails, 10), r.cfg.Refresh)))
		p.fails++
		r.metrics.refreshes.WithLabelValues("error").Inc()
	}
	return changed
}

// take publishes the rows that Redis has answered to a reader, if they are later than the page.
func (r *refresher) take(p *page, a *rankcache.Answer) {
	r.mu.Lock()
	old, changed := p.cached.Load(), false
	if old == nil || old.top.State.Before(a.State) {
		_, changed = p.publish(rankcache.TopOf(p.board, a), a.At, a.CurrentAt)
		p.due = time.Now() // the page has more rows
	}
	r.mu.Unlock()
	if changed && r.changed != nil {
		r.changed(p.board)
	}
}

// logOutcome logs the first failure and the first success after it.
func (r *refresher) logOutcome(ctx context.Context, err error) {
	switch failing := err != nil; {
	case r.failing.Swap(failing) == failing || context.Cause(ctx) == context.Canceled:
	case failing:
		r.log.Warn("pages of hot boards can't be refreshed; they are served until they are stale, then reads go to Redis",
			"stale", r.cfg.Stale, "err", err)
	default:
		r.log.Info("pages of hot boards are refreshed again")
	}
}
