package sidecar

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
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
	m := &originMetrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rankcache_origin_calls_total",
			Help: "Reads sent to Redis, by operation and result (ok, unavailable, overloaded, panic, error).",
		}, []string{"op", "result"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rankcache_origin_call_duration_seconds",
			Help:    "Time that Redis took to answer a read.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 11),
		}, []string{"op"}),
		shared: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rankcache_origin_shared_total",
			Help: "Reads that shared one call to Redis with others.",
		}),
		ledger: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rankcache_ledger_calls_total",
			Help: "Reads sent to the ledger because Redis did not answer, by operation and result (as of rankcache_origin_calls_total).",
		}, []string{"op", "result"}),
	}
	inFlight := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rankcache_origin_in_flight",
		Help: "Reads in progress at Redis, or waiting for one of its calls.",
	}, func() float64 { return float64(waiting.Load()) })
	waitFor := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rankcache_origin_readers_waiting",
		Help: "Callers that wait for an answer of Redis; several may share one call.",
	}, func() float64 { return float64(readers.Load()) })
	return m, register(reg, m.calls, m.seconds, m.shared, m.ledger, inFlight, waitFor)
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

// register registers all collectors. The error names the one that clashes. A nil reg
// registers nothing.
func register(reg prometheus.Registerer, cs ...prometheus.Collector) error {
	if reg == nil {
		return nil
	}
	for _, c := range cs {
		if err := reg.Register(c); err != nil {
			return err
		}
	}
	return nil
}
