package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
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
	finals        *finals
	log           *slog.Logger
	failed        atomic.Int64 // calls in a row that Redis left unanswered
	triedAt       atomic.Int64 // when Redis was last tried first, Unix nanoseconds
}

// asked is one of the two.
type asked struct {
	rankcache.Reader
	source rankcache.Source
}

// order returns which of the two is asked first. A Redis that has left several calls
// unanswered is second, but for one call a second, so that readers don't wait for it.
func (o *origins) order() (first, second asked) {
	now, tried := time.Now().UnixNano(), o.triedAt.Load()
	if o.ledger.Reader == nil || o.failed.Load() < awayAfter || now-tried > retryEvery.Nanoseconds() && o.triedAt.CompareAndSwap(tried, now) {
		return o.redis, o.ledger
	}
	return o.ledger, o.redis
}

// done notes how a call has ended.
func (o *origins) done(source rankcache.Source, op string, err error, took time.Duration) {
	if source == rankcache.SourceLedger {
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

// askEither asks the first of the origins, and the second for what the first has not answered. Where
// both are unavailable, the error is Redis's.
func (o *origins) askEither(ctx context.Context, op string, qs []rankcache.Query) []rankcache.Answer {
	first, second := o.order()
	if second.Reader == nil {
		return o.askOne(ctx, op, first, qs)
	}
	part, cancel := half(ctx)
	as := o.askOne(part, op, first, qs)
	cancel()
	var again []rankcache.Query
	var places []int
	for i := range as {
		if errors.Is(as[i].Err, rankcache.ErrUnavailable) || errors.Is(as[i].Err, rankcache.ErrFinalCut) {
			again, places = append(again, qs[i]), append(places, i)
		}
	}
	if len(again) == 0 {
		return as
	}
	for i, a := range o.askOne(ctx, op, second, again) {
		if second.source == rankcache.SourceRedis || !errors.Is(a.Err, rankcache.ErrUnavailable) {
			as[places[i]] = a
		}
	}
	return as
}

// askOne asks one of the two. A panic is turned into the error of the answers: no caller's stack
// could recover it, so it would end the process.
func (o *origins) askOne(ctx context.Context, op string, of asked, qs []rankcache.Query) (as []rankcache.Answer) {
	began := time.Now()
	as = make([]rankcache.Answer, len(qs))
	defer func() {
		if fault := recover(); fault != nil {
			o.log.Error("a call to Redis or the ledger panicked", "op", op, "fault", fault, "stack", string(debug.Stack()))
			for i := range as {
				as[i] = rankcache.Answer{Err: ErrFault}
			}
		}
		var err error
		for i := range as {
			err = cmp.Or(err, as[i].Err)
		}
		o.done(of.source, op, err, time.Since(began))
	}()
	of.Read(ctx, qs, as)
	for i := range as {
		checkAnswer(&qs[i], &as[i], of.source)
	}
	return as
}

// checkAnswer sets the source of an answer, and makes one an error that lacks members, or their
// rows.
func checkAnswer(q *rankcache.Query, a *rankcache.Answer, source rankcache.Source) {
	if a.Err == nil && len(a.Own) != len(q.Members) {
		a.Fail(fmt.Errorf("origin answered %d members, want %d", len(a.Own), len(q.Members)))
	}
	if a.Source != rankcache.SourceFinal {
		a.Source = source
	}
	for i := range a.Own {
		own := &a.Own[i]
		own.Source = a.Source
		if row := own.Rank - 1 - own.First; q.Around > 0 && q.Scores == nil && own.Rank > 0 && (row < 0 || row >= len(own.Neighbours)) {
			a.Fail(fmt.Errorf("origin answered rank %d with %d neighbours from %d", own.Rank, len(own.Neighbours), own.First))
			return
		}
	}
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
