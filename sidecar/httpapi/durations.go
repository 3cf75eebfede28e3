package httpapi

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"rankcache/sidecar/encode"
	"rankcache/sidecar/internal/latency"
)

// ending is the source and the status of an answer.
type ending struct{ source, status string }

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
