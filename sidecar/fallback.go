package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"rankcache"
)

const (
	// awayAfter is how many calls in a row Redis must leave unanswered before the ledger is
	// asked first.
	awayAfter = 3
	// retryEvery is how often Redis is tried first nevertheless.
	retryEvery = time.Second
)

// origins are Redis and, where there is one, the ledger, which answers while Redis is away.
type origins struct {
	redis, ledger asked
	metrics       *originMetrics
	failed        atomic.Int64 // calls in a row that Redis left unanswered
	triedAt       atomic.Int64 // when Redis was last tried first, Unix nanoseconds
}

// asked is one of the two.
type asked struct {
	Origin
	source Source
}

// order returns which of the two is asked first. A Redis that has left several calls
// unanswered is second, but for one call a second, so that readers don't wait for it.
func (o *origins) order() (first, second asked) {
	now, tried := time.Now().UnixNano(), o.triedAt.Load()
	if o.ledger.Origin == nil || o.failed.Load() < awayAfter || now-tried > retryEvery.Nanoseconds() && o.triedAt.CompareAndSwap(tried, now) {
		return o.redis, o.ledger
	}
	return o.ledger, o.redis
}

// done notes how a call has ended.
func (o *origins) done(source Source, op string, err error, took time.Duration) {
	if source == SourceLedger {
		o.metrics.ledger.WithLabelValues(op, result(err)).Inc()
		return
	}
	o.metrics.done(op, err, took)
	if errors.Is(err, rankcache.ErrUnavailable) {
		o.failed.Add(1)
	} else {
		o.failed.Store(0)
	}
}

// ask calls the first of the origins, and the second if the first is unavailable. Where both
// are, the error is Redis's.
func ask[T any](ctx context.Context, f *flights, op string, call func(context.Context, asked) (T, error)) (T, error) {
	first, second := f.origins.order()
	if second.Origin == nil {
		return callOne(ctx, f, op, first, call)
	}
	part, cancel := half(ctx)
	v, err := callOne(part, f, op, first, call)
	cancel()
	if !errors.Is(err, rankcache.ErrUnavailable) {
		return v, err
	}
	w, secondErr := callOne(ctx, f, op, second, call)
	if first.source == SourceRedis && errors.Is(secondErr, rankcache.ErrUnavailable) {
		return v, err
	}
	return w, secondErr
}

func callOne[T any](ctx context.Context, f *flights, op string, of asked, call func(context.Context, asked) (T, error)) (v T, err error) {
	began := time.Now()
	defer func() { f.origins.done(of.source, op, err, time.Since(began)) }()
	return guard(ctx, f, op, func(ctx context.Context) (T, error) { return call(ctx, of) })
}

// half returns a context that ends after half of the time that is left, which leaves the
// second as much.
func half(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/2)
}

// askWhole is ask for whole pages, each of which has its own error: the second is asked for
// those that the first has not answered.
func (f *flights) askWhole(ctx context.Context, op string, queries []rankcache.PageQuery) []wholePage {
	first, second := f.origins.order()
	if second.Origin == nil {
		return f.wholeOf(ctx, op, first, queries)
	}
	part, cancel := half(ctx)
	pages := f.wholeOf(part, op, first, queries)
	cancel()
	var again []rankcache.PageQuery
	var places []int
	for i := range pages {
		if errors.Is(pages[i].Err, rankcache.ErrUnavailable) {
			again, places = append(again, queries[i]), append(places, i)
		}
	}
	if len(again) == 0 {
		return pages
	}
	for i, p := range f.wholeOf(ctx, op, second, again) {
		if p.source == SourceRedis || !errors.Is(p.Err, rankcache.ErrUnavailable) {
			pages[places[i]] = p
		}
	}
	return pages
}

// wholeOf returns what one of the origins answers, without answers whose rows don't have the
// member.
func (f *flights) wholeOf(ctx context.Context, op string, of asked, queries []rankcache.PageQuery) []wholePage {
	answers, err := callOne(ctx, f, op, of, func(ctx context.Context, of asked) (pages []rankcache.WholePage, err error) {
		pages = of.WholePages(ctx, queries)
		for i := range pages {
			p := &pages[i]
			row := p.Own.Rank - 1 - p.Own.First
			if p.Err == nil && p.Own.Rank > 0 && queries[i].Around >= 0 && (row < 0 || row >= len(p.Own.Neighbours)) {
				p.Err = fmt.Errorf("origin answered rank %d with %d neighbours from %d", p.Own.Rank, len(p.Own.Neighbours), p.Own.First)
			}
			err = cmp.Or(err, p.Err)
		}
		return pages, err
	})
	pages := make([]wholePage, len(queries))
	for i := range pages {
		pages[i].source = of.source
		if pages[i].Err = err; i < len(answers) { // else the call panicked
			pages[i].WholePage = answers[i]
		}
	}
	return pages
}
