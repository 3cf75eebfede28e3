package sidecar

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/internal/metric"
)

// originMetrics counts calls to Redis and the ledger. They cost tens of microseconds each, so
// ordinary counters are cheap enough.
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
