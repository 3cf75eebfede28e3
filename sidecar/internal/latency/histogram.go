// Package latency measures how long answers take, at a cost of some nanoseconds an answer.
package latency

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const Every = 16 // of how many short answers one is measured: two looks at the clock take 1 % of a page's CPU

// bounds are the upper ends of the buckets. 50 ms is the objective of a read.
var bounds = [...]time.Duration{50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, time.Second}

// Histogram counts durations. The zero value is ready for use, also concurrently.
type Histogram struct {
	buckets [len(bounds) + 1]atomic.Uint64 // the last one is above all bounds
	nanos   atomic.Int64
}

// Observe counts n answers that took d each.
func (h *Histogram) Observe(d time.Duration, n uint64) {
	i := 0
	for i < len(bounds) && d > bounds[i] {
		i++
	}
	h.buckets[i].Add(n)
	h.nanos.Add(int64(d) * int64(n))
}

// Metric returns what was counted, or false if nothing was.
func (h *Histogram) Metric(desc *prometheus.Desc, labels ...string) (m prometheus.Metric, counted bool) {
	buckets, count := make(map[float64]uint64, len(bounds)), uint64(0)
	for i, bound := range bounds {
		count += h.buckets[i].Load()
		buckets[bound.Seconds()] = count
	}
	count += h.buckets[len(bounds)].Load()
	if count == 0 {
		return nil, false
	}
	return prometheus.MustNewConstHistogram(desc, count, time.Duration(h.nanos.Load()).Seconds(), buckets, labels...), true
}

// Sampler picks one of [Every] answers of a connection, beginning at different ones: short connections count.
type Sampler struct{ n uint32 }

// NewSampler returns the sampler of a connection.
func NewSampler(conn uint64) Sampler { return Sampler{uint32(conn % Every)} }

// Next reports whether the next answer is measured. Only the connection's goroutine calls it.
func (s *Sampler) Next() bool {
	s.n++
	return s.n%Every == 0
}
