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

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/internal/metric"
)

const (
	awayAfter  = 3           // how many calls in a row Redis must leave unanswered before the ledger is asked first
	retryEvery = time.Second // how often Redis is tried first nevertheless
)

// origins are Redis and, where there is one, the ledger, which answers while Redis is away.
type origins struct {
	redis, ledger asked
	metrics       *originMetrics
	log           *slog.Logger
	failed        atomic.Int64 // calls in a row that Redis left unanswered
	triedAt       atomic.Int64 // when Redis was last tried first, Unix nanoseconds
}

type asked struct {
	rankcache.Reader
	source rankcache.Source
}

// order returns who is asked first. A Redis that left several calls unanswered is second, but once a second.
func (o *origins) order() (first, second asked) {
	now, tried := time.Now().UnixNano(), o.triedAt.Load()
	if o.ledger.Reader == nil || o.failed.Load() < awayAfter || now-tried > retryEvery.Nanoseconds() && o.triedAt.CompareAndSwap(tried, now) {
		return o.redis, o.ledger
	}
	return o.ledger, o.redis
}

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

// ask asks one origin, and the other for what is unanswered. Where both are unavailable, the error is Redis's.
func (o *origins) ask(ctx context.Context, op string, qs []rankcache.Query) []rankcache.Answer {
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

// askOne asks one of the two. A panic becomes the answers' error: no caller's stack could recover it.
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

// checkAnswer sets the source of an answer, and makes one an error that lacks members, or their rows.
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

// half returns a context that ends after half of the time that is left, which leaves the second as much.
func half(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/2)
}

// originMetrics counts calls to Redis and the ledger, beside which ordinary counters are cheap.
type originMetrics struct {
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	shared  prometheus.Counter
	ledger  *prometheus.CounterVec
}

func newOriginMetrics(reg prometheus.Registerer, waiting, readers *atomic.Int64) (*originMetrics, error) {
	set := metric.New(reg, "")
	m := &originMetrics{
		calls:   set.Counters("origin_calls_total", "Reads sent to Redis, by operation and result (ok, unavailable, overloaded, panic, error).", "op", "result"),
		seconds: set.Histograms("origin_call_duration_seconds", "Time that Redis took to answer a read.", prometheus.ExponentialBuckets(0.0001, 2.5, 11), "op"),
		shared:  set.Counter("origin_shared_total", "Reads that shared one call to Redis with others."),
		ledger:  set.Counters("ledger_calls_total", "Reads sent to the ledger because Redis did not answer or does not have an ended board, by operation and result (as of rankcache_origin_calls_total).", "op", "result"),
	}
	set.GaugeFunc("origin_in_flight", "Reads in progress at Redis, or waiting for one of its calls.", func() float64 { return float64(waiting.Load()) })
	set.GaugeFunc("origin_readers_waiting", "Callers that wait for an answer of Redis; several may share one call.", func() float64 { return float64(readers.Load()) })
	return m, set.Err()
}

func (m *originMetrics) done(op string, err error, took time.Duration) {
	m.calls.WithLabelValues(op, result(err)).Inc()
	if took > 0 {
		m.seconds.WithLabelValues(op).Observe(took.Seconds())
	}
}

func result(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, rankcache.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, ErrOverloaded):
		return "overloaded"
	case errors.Is(err, ErrFault):
		return "panic"
	}
	return "error"
}
