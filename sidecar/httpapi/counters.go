package httpapi

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/sidecar/encode"
)

// outcome is the result of a request: a [Source] for an answer, above those one for
// an answer that has not changed, and last the index of a problem's code.
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

// stripes is a power of two well above the number of cores.
const stripes = 64

// counters counts requests. Each connection adds to one of several stripes, so
// that cores do not fight for a cache line; a scrape adds them up.
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
