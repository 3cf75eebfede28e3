package lastgood

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	saves, loads *prometheus.CounterVec // by result, a fixed few
	seconds      prometheus.Histogram
}

func newMetrics() *metrics {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rankcache_lastgood_" + name, Help: help}, []string{"result"})
	}
	return &metrics{
		saves: counter("saves_total", "Boards saved to files, by result: ok or failed."),
		loads: counter("loads_total", "Boards loaded from files, by result: ok, absent, cut, corrupt, foreign, version or failed."),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "rankcache_lastgood_save_seconds",
			Help: "How long it took to save a board.", Buckets: []float64{.005, .02, .1, .5, 2, 10}}),
	}
}

func (m *metrics) register(reg prometheus.Registerer) error {
	return errors.Join(reg.Register(m.saves), reg.Register(m.loads), reg.Register(m.seconds))
}
