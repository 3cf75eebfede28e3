package httpapi

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"rankcache"
	"rankcache/sidecar/encode"
	"rankcache/sidecar/internal/latency"
)

// outcome is a request's result: a [Source], above those one for an unchanged answer, then indexes of problems' codes.
type outcome uint8

const (
	sources            = outcome(rankcache.Sources)
	outcomeNotModified = sources                      // and those of the other sources
	outcomeProfiles    = outcomeNotModified + sources // answered from profiles alone
	outcomeNoSource    = outcomeProfiles + 1          // answered, and not by one source
	firstProblem       = outcomeNoSource + 1
	outcomes           = firstProblem + outcome(len(encode.Codes))
)

func (o outcome) labels() (result, source string) {
	switch {
	case o < outcomeNotModified:
		return "ok", rankcache.Source(o).String()
	case o < outcomeProfiles:
		return "not_modified", rankcache.Source(o - outcomeNotModified).String()
	case o == outcomeProfiles:
		return "ok", "profiles"
	case o == outcomeNoSource:
		return "ok", ""
	}
	return string(encode.Codes[o-firstProblem].Code), ""
}

const stripes = 64 // a power of two well above the number of cores

// counters counts requests in stripes, so that cores don't fight for a cache line; a scrape adds them up.
type counters struct {
	desc    *prometheus.Desc
	stripes [stripes]stripe
}

type stripe struct {
	n [routes][outcomes]atomic.Uint64
	_ [64]byte // keeps the next stripe off this one's last cache line
}

func newCounters() *counters {
	return &counters{desc: prometheus.NewDesc("rankcache_requests_total",
		"Requests to the data listener, by route, result (ok, not_modified or the code of the error) and source of the answer.",
		[]string{"route", "result", "source"}, nil)}
}

func (c *counters) add(conn uint64, r route, o outcome) {
	c.stripes[conn%stripes].n[r][o].Add(1)
}

// Describe implements [prometheus.Collector].
func (c *counters) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

// Collect implements [prometheus.Collector].
func (c *counters) Collect(ch chan<- prometheus.Metric) {
	for r := range routes {
		for o := range outcomes {
			if n := c.sum(r, o); n > 0 {
				result, source := o.labels()
				ch <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(n), r.String(), result, source)
			}
		}
	}
}

func (c *counters) sum(r route, o outcome) (n uint64) {
	for i := range c.stripes {
		n += c.stripes[i].n[r][o].Load()
	}
	return n
}

type ending struct{ source, status string } // the source and the status of an answer

// durations measures requests by route, source and status.
type durations struct {
	desc    *prometheus.Desc
	endings []ending
	of      [outcomes]int // index in endings
	n       [routes][]latency.Histogram
}

func newDurations() *durations {
	d := &durations{desc: prometheus.NewDesc("rankcache_request_duration_seconds",
		"Time from a parsed request until its answer is ready to be sent. Answers of the request cache are measured once in 16, and then count 16 times.",
		[]string{"route", "source", "status"}, nil)}
	known := make(map[ending]int)
	for o := range outcomes {
		_, source := o.labels()
		e := ending{source, strconv.Itoa(o.status())}
		i, ok := known[e]
		if !ok {
			i = len(d.endings)
			known[e], d.endings = i, append(d.endings, e)
		}
		d.of[o] = i
	}
	for r := range d.n {
		d.n[r] = make([]latency.Histogram, len(d.endings))
	}
	return d
}

func (o outcome) status() int {
	switch {
	case o >= outcomeNotModified && o < outcomeProfiles:
		return fasthttp.StatusNotModified
	case o >= firstProblem:
		return encode.Codes[o-firstProblem].Status
	}
	return fasthttp.StatusOK
}

func (d *durations) observe(r route, o outcome, took time.Duration, n uint64) {
	d.n[r][d.of[o]].Observe(took, n)
}

// Describe implements [prometheus.Collector].
func (d *durations) Describe(ch chan<- *prometheus.Desc) { ch <- d.desc }

// Collect implements [prometheus.Collector].
func (d *durations) Collect(ch chan<- prometheus.Metric) {
	for r := range routes {
		for i, e := range d.endings {
			if m, counted := d.n[r][i].Metric(d.desc, r.String(), e.source, e.status); counted {
				ch <- m
			}
		}
	}
}
