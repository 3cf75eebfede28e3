package resp

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache/sidecar/internal/latency"
)

// durations measures the answers to what one read of a connection brings: one command, or
// those of a pipeline.
type durations struct {
	desc         *prometheus.Desc
	here, passed latency.Histogram
}

func newDurations() *durations {
	return &durations{desc: prometheus.NewDesc("rankcache_resp_answer_duration_seconds",
		"Time from a read of a connection until the commands in it are answered, by source: all of them here (here), or some by Redis (redis). One read in 16 is measured and counts 16 times; reads with blocking commands are not.",
		[]string{"source"}, nil)}
}

// Describe implements [prometheus.Collector].
func (d *durations) Describe(ch chan<- *prometheus.Desc) { ch <- d.desc }

// Collect implements [prometheus.Collector].
func (d *durations) Collect(ch chan<- prometheus.Metric) {
	for source, h := range map[string]*latency.Histogram{"here": &d.here, "redis": &d.passed} {
		if m, counted := h.Metric(d.desc, source); counted {
			ch <- m
		}
	}
}

// stopwatch measures the reads of one connection.
type stopwatch struct {
	sampler latency.Sampler
	begun   time.Time // zero: this read is not measured
	passed  bool
}

func (w *stopwatch) begin() {
	if w.begun, w.passed = (time.Time{}), false; w.sampler.Next() {
		w.begun = time.Now()
	}
}

// pass is called for a command that is passed on. How long a blocking one waits is its
// client's choice.
func (w *stopwatch) pass(blocking bool) {
	if w.passed = true; blocking {
		w.begun = time.Time{}
	}
}

// end is called when all commands are answered.
func (w *stopwatch) end(d *durations) {
	if w.begun.IsZero() {
		return
	}
	h := &d.here
	if w.passed {
		h = &d.passed
	}
	h.Observe(time.Since(w.begun), latency.Every)
}
