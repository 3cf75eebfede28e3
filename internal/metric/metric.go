// Package metric makes the Prometheus metrics of one part of the program.
package metric

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Set makes metrics and registers them. It belongs to one goroutine.
type Set struct {
	reg    prometheus.Registerer
	prefix string
	err    error
}

// New returns a set of metrics whose names begin with "rankcache_" and prefix. A nil reg registers nothing.
func New(reg prometheus.Registerer, prefix string) *Set {
	return &Set{reg: reg, prefix: "rankcache_" + prefix}
}

// Err returns why metrics were not registered, by name: reg has others of the same name.
func (s *Set) Err() error { return s.err }

// Must panics with the error of Err.
func (s *Set) Must() {
	if s.err != nil {
		panic(s.err)
	}
}

func (s *Set) Add(c prometheus.Collector) { register(s, "of a collector", c) }

func (s *Set) Counter(name, help string) prometheus.Counter {
	return register(s, name, prometheus.NewCounter(prometheus.CounterOpts(s.opts(name, help))))
}

// Counters makes a counter for each value of the labels.
func (s *Set) Counters(name, help string, labels ...string) *prometheus.CounterVec {
	return register(s, name, prometheus.NewCounterVec(prometheus.CounterOpts(s.opts(name, help)), labels))
}

// CounterFunc makes a counter with the value of a function, which any goroutine may call.
func (s *Set) CounterFunc(name, help string, value func() float64) {
	register(s, name, prometheus.NewCounterFunc(prometheus.CounterOpts(s.opts(name, help)), value))
}

func (s *Set) Gauge(name, help string) prometheus.Gauge {
	return register(s, name, prometheus.NewGauge(prometheus.GaugeOpts(s.opts(name, help))))
}

// Gauges makes a gauge for each value of the labels.
func (s *Set) Gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return register(s, name, prometheus.NewGaugeVec(prometheus.GaugeOpts(s.opts(name, help)), labels))
}

// GaugeFunc makes a gauge with the value of a function, which any goroutine may call.
func (s *Set) GaugeFunc(name, help string, value func() float64) {
	register(s, name, prometheus.NewGaugeFunc(prometheus.GaugeOpts(s.opts(name, help)), value))
}

// Histogram makes a histogram with buckets up to these values.
func (s *Set) Histogram(name, help string, buckets []float64) prometheus.Histogram {
	return register(s, name, prometheus.NewHistogram(prometheus.HistogramOpts{Name: s.prefix + name, Help: help, Buckets: buckets}))
}

// Histograms makes a histogram for each value of the labels.
func (s *Set) Histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return register(s, name, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: s.prefix + name, Help: help, Buckets: buckets}, labels))
}

func (s *Set) opts(name, help string) prometheus.Opts {
	return prometheus.Opts{Name: s.prefix + name, Help: help}
}

func register[C prometheus.Collector](s *Set, name string, c C) C {
	if s.reg != nil {
		if err := s.reg.Register(c); err != nil {
			s.err = errors.Join(s.err, fmt.Errorf("metric %s%s: %w", s.prefix, name, err))
		}
	}
	return c
}
