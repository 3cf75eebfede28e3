package resp

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/sidecar/internal/latency"
)

type source uint8 // what answered a command

const (
	sourceLocal   = source(rankcache.SourceLocal) // the whole board
	sourceHot     = source(rankcache.SourceHot)   // the kept top
	sourcePassed  = source(rankcache.SourceRedis)
	sourceHere    = sourcePassed + 1 // the listener: the handshake
	sourceRefused = sourcePassed + 2
	sources       = sourcePassed + 3
)

func (s source) String() string { return [...]string{"local", "hot", "redis", "here", "refused"}[s] }

const stripes = 64 // a power of two well above the number of cores

// counts counts commands in several stripes, so that cores don't fight for a cache line; a scrape adds them up.
type counts struct {
	desc    *prometheus.Desc
	stripes [stripes]struct {
		n [verbs][sources]atomic.Uint64
		_ [64]byte
	}
}

const countsHelp = "Commands to the RESP listener, by command (other: all that are only passed on) and what answered: a whole board (local), a kept top (hot), the listener (here), Redis (redis), none (refused)."

func newCounts() *counts {
	return &counts{desc: prometheus.NewDesc("rankcache_resp_commands_total",
		countsHelp,
		[]string{"command", "source"}, nil)}
}

func (c *counts) add(conn uint64, v verb, s source) { c.stripes[conn%stripes].n[v][s].Add(1) }

// Describe implements [prometheus.Collector].
func (c *counts) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

// Collect implements [prometheus.Collector].
func (c *counts) Collect(ch chan<- prometheus.Metric) {
	for v := range verbs {
		for s := range sources {
			if n := c.sum(v, s); n > 0 {
				ch <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(n), names[v], s.String())
			}
		}
	}
}

func (c *counts) sum(v verb, s source) (n uint64) {
	for i := range c.stripes {
		n += c.stripes[i].n[v][s].Load()
	}
	return n
}

// durations measures the answers to what one read of a connection brings: one command, or those of a pipeline.
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

// pass is called for a command that is passed on. How long a blocking one waits is its client's choice.
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
