package resp

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
)

// source is what answered a command.
type source uint8

const (
	sourceLocal   = source(rankcache.SourceLocal) // the whole board
	sourceHot     = source(rankcache.SourceHot)   // the kept top
	sourcePassed  = source(rankcache.SourceRedis)
	sourceHere    = sourcePassed + 1 // the listener: the handshake
	sourceRefused = sourcePassed + 2
	sources       = sourcePassed + 3
)

func (s source) String() string { return [...]string{"local", "hot", "redis", "here", "refused"}[s] }

// stripes is a power of two well above the number of cores.
const stripes = 64

// counts counts commands. Each connection adds to one of several stripes, so that cores
// do not fight for a cache line; a scrape adds them up.
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
