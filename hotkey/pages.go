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

// page is the top page of one promoted board. Any goroutine may read it; what writes holds the refresher's lock.
type page struct {
	board    rankcache.BoardID
	cached   atomic.Pointer[cachedTop] // nil: nothing read yet, or dropped when idle
	lastRead atomic.Int64              // Unix ns of the last read, to about readGrain
	hits     atomic.Uint64             // reads answered from this page

	// Guarded by the refresher's lock.
	inFlight bool          // being read from Redis
	begun    time.Time     // when that began, or last did
	due      time.Time     // when to read it next
	fails    int           // failed reads in a row
	wanted   chan struct{} // closed by the next read that begins, once it has ended; nil: nobody waits
	reading  chan struct{} // the same of the read that is under way

	history string // replication id under which the board was last seen ("": not known); of the fetch alone, as is lost
	lost    bool   // Redis has lost the board, and that was told
}

// cachedTop is a page, when it was last known to equal Redis, and when Redis had answered it.
type cachedTop struct {
	top          *rankcache.Top
	at, answered time.Time
}

const readGrain = int64(100 * time.Millisecond) // limits how often readers of one page write the same cache line

// read returns the cached page, nil when Redis has not answered it for stale, and records the time of the read.
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

// publish replaces the page by top, whose reading began at a time and which is current at at. An unchanged page keeps
// its pointer, and its encoded pages. A later state that Redis answered since stays: replaced is false.
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
	// refreshTick is the interval of looking for due pages. Pages that become due in one interval share a pipeline. A page
	// whose board is written is read again at once, but not sooner than this after its last read began.
	refreshTick = 50 * time.Millisecond
	maxBatch    = 64 // bounds one pipeline: 64 pages of 100 entries are about 200 KB
	// retryFirst is the pause after a page's first failed read; it doubles up to the refresh interval.
	retryFirst = 100 * time.Millisecond
)

// refresher reads the pages of promoted boards from Redis, each by one fetch at a time, due ones in one pipeline.
type refresher struct {
	cfg       Config
	origin    rankcache.Reader
	log       *slog.Logger
	metrics   *metrics
	changed   func(rankcache.BoardID)                                                           // see [Deps]
	histories func(ctx context.Context, boards []rankcache.BoardID, now bool) ([]string, error) // that of [Deps]

	mu      sync.Mutex    // guards the scheduling fields of all pages; nothing is called under it
	failing atomic.Bool   // the last fetch failed, which was logged
	woken   chan struct{} // a page is due now; room for one
}

// run fetches due pages until ctx is done, then waits for its fetches.
func (r *refresher) run(ctx context.Context, pages func() pageMap) error {
	var fetches sync.WaitGroup
	defer fetches.Wait()
	ticker := time.NewTicker(refreshTick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-r.woken:
		}
		for _, batch := range r.due(time.Now(), pages()) {
			fetches.Go(func() { r.fetch(ctx, batch) })
		}
	}
}

// due returns the pages to read now, in batches, and empties idle pages: the next reader gets no old one.
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
		p.inFlight, p.begun, p.reading, p.wanted = true, now, p.wanted, nil
		if batch = append(batch, p); len(batch) == maxBatch {
			batches, batch = append(batches, batch), nil
		}
	}
	if len(batch) > 0 {
		batches = append(batches, batch)
	}
	return batches
}

func (r *refresher) fetch(ctx context.Context, batch []*page) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	boards := make([]rankcache.BoardID, len(batch))
	for i, p := range batch {
		boards[i] = p.board
	}
	histories := r.historiesBefore(ctx, boards)
	begin := time.Now()
	tops, current, err := r.read(ctx, batch)
	r.keepLost(ctx, batch, tops, histories)
	r.complete(batch, tops, current, begin)
	r.logOutcome(ctx, err)
}

// read returns the head of each board, nil where it could not be read, and when they are known to be current; and why
// not. A replica behind a page is not asked for it: its bound is the state that it has, or its age.
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

// complete publishes the pages of a fetch that started at begin. The whole batch is due again at one time.
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
		if p.inFlight = false; p.reading != nil {
			defer close(p.reading)
			p.reading = nil
		}
		if i < len(tops) && tops[i] != nil {
			if p.fails, p.due = 0, next; p.wanted != nil {
				r.hasten(p)
			}
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

// soon has a page read again, in a read that has not begun, and returns what is closed when that has ended.
func (r *refresher) soon(p *page) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.wanted == nil {
		if p.wanted = make(chan struct{}); !p.inFlight {
			r.hasten(p)
		}
	}
	return p.wanted
}

// hasten has a page read as soon as it may be.
func (r *refresher) hasten(p *page) {
	p.due = p.begun.Add(refreshTick)
	time.AfterFunc(time.Until(p.due), func() {
		select {
		case r.woken <- struct{}{}:
		default:
		}
	})
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
