package hotkey

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"rankcache"
)

const (
	// lookEvery is how often due pages are looked for. What falls due between
	// two looks shares a pipeline.
	lookEvery = 50 * time.Millisecond
	// maxBatch bounds one pipeline: 64 pages of 100 entries are about 200 KB.
	maxBatch = 64
	// retryFirst is the pause after a page's first failed read; it doubles up
	// to the refresh interval.
	retryFirst = 100 * time.Millisecond
)

// Origin reads the heads of boards from the system of record.
type Origin interface {
	// Tops returns the first n entries of each board. The i-th is nil when
	// board i could not be read; the error then says why.
	Tops(ctx context.Context, boards []rankcache.BoardID, n int) ([]*rankcache.Top, error)
}

// refresher keeps the pages of promoted boards fresh: one flight per board,
// boards due together in one pipeline.
type refresher struct {
	cfg     Config
	origin  Origin
	log     *slog.Logger
	metrics *metrics

	mu      sync.Mutex // guards the scheduling fields of all pages; nothing is called under it
	failing bool       // the last batch failed; for saying so once
}

// run looks for due pages until ctx is done, then waits for its flights.
func (r *refresher) run(ctx context.Context, pages func() pageMap) error {
	var flights sync.WaitGroup
	defer flights.Wait()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, batch := range r.due(time.Now(), pages()) {
			flights.Go(func() { r.fetch(ctx, batch) })
		}
	}
}

// due takes off the pages to read now, in batches, and drops those that nobody
// asks for any more, so that the next reader does not get an old one.
func (r *refresher) due(now time.Time, pages pageMap) (batches [][]*page) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var batch []*page
	for _, p := range pages {
		if p.flying || p.due.After(now) {
			continue
		}
		if p.idle(now, r.cfg.Idle) {
			p.held.Store(nil)
			continue
		}
		p.flying = true
		if batch = append(batch, p); len(batch) == maxBatch {
			batches, batch = append(batches, batch), nil
		}
	}
	if len(batch) > 0 {
		batches = append(batches, batch)
	}
	return batches
}

// fetch reads the pages of a batch and publishes those that could be read.
func (r *refresher) fetch(ctx context.Context, batch []*page) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.FetchTimeout)
	defer cancel()
	boards := make([]rankcache.BoardID, len(batch))
	for i, p := range batch {
		boards[i] = p.board
	}
	begin := time.Now()
	tops, err := r.origin.Tops(ctx, boards, r.cfg.Entries)
	r.land(batch, tops, begin)
	r.report(ctx, err)
}

// land publishes what was read since begin and makes the whole batch due again
// at one moment, so that it stays together.
func (r *refresher) land(batch []*page, tops []*rankcache.Top, begin time.Time) {
	next := begin.Add(jitter(r.cfg.Refresh))
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, p := range batch {
		p.flying = false
		if i < len(tops) && tops[i] != nil {
			p.publish(tops[i], begin)
			p.fails, p.due = 0, next
			r.metrics.refreshes.WithLabelValues("ok").Inc()
			continue
		}
		p.due = now.Add(jitter(min(retryFirst<<min(p.fails, 10), r.cfg.Refresh)))
		p.fails++
		r.metrics.refreshes.WithLabelValues("error").Inc()
	}
}

// report logs when reading starts to fail and when it works again.
func (r *refresher) report(ctx context.Context, err error) {
	r.mu.Lock()
	changed := r.failing != (err != nil)
	r.failing = err != nil
	r.mu.Unlock()
	switch {
	case !changed || context.Cause(ctx) == context.Canceled:
	case err != nil:
		r.log.Warn("pages of hot boards can't be refreshed; they are served until they are stale, then Redis is asked",
			"stale", r.cfg.Stale, "err", err)
	default:
		r.log.Info("pages of hot boards are refreshed again")
	}
}

// jitter returns d within a tenth, so that sidecars started together drift
// apart.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64()))
}
