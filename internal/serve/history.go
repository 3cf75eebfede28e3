package serve

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"rankcache/internal/httpserve"
	"rankcache/internal/tick"
)

const (
	// historyEvery and historyFor bound what is kept: 180 points, some 15 KiB.
	historyEvery = 5 * time.Second
	historyFor   = 15 * time.Minute
)

// metricHistory keeps figures of the last 15 minutes, for the plots of the operator's page. mu is a leaf.
type metricHistory struct {
	from prometheus.Gatherer
	last *gathered // owned by Run

	mu     sync.Mutex
	points []historyPoint // oldest first
}

// historyPoint is the figures of the 5 s before At. null: there is nothing to tell.
type historyPoint struct {
	At         time.Time `json:"at"`
	Local      *float64  `json:"local"` // reads answered per second over HTTP, RESP and gRPC, by source
	Hot        *float64  `json:"hot"`
	Redis      *float64  `json:"redis"`
	RedisCalls *float64  `json:"redis_calls"`  // round trips to Redis per second, and reads over RESP that were passed on
	Failed     *float64  `json:"failed"`       // requests per second with an answer of 500 or more
	Updates    *float64  `json:"updates"`      // applied per second
	AgeS       *float64  `json:"age_s"`        // of the oldest local board
	Behind     *float64  `json:"behind"`       // updates that the board furthest behind lacks
	P99Ms      *float64  `json:"p99_ms"`       // of requests, over the slowest of the protocols
	RedisP99Ms *float64  `json:"redis_p99_ms"` // of calls to Redis
}

// Run takes a point every 5 s until ctx ends.
func (h *metricHistory) Run(ctx context.Context) error {
	for range tick.NowAndEvery(ctx, historyEvery) {
		h.take(time.Now())
	}
	return nil
}

func (h *metricHistory) take(at time.Time) {
	families, err := h.from.Gather()
	if err != nil { // an operator finds it at /metrics
		return
	}
	now := &gathered{at: at, families: make(map[string]*dto.MetricFamily, len(families))}
	for _, f := range families {
		now.families[f.GetName()] = f
	}
	before := h.last
	h.last = now
	if before == nil {
		return
	}
	p := now.point(before)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.points) == int(historyFor/historyEvery) {
		h.points = slices.Delete(h.points, 0, 1)
	}
	h.points = append(h.points, p)
}

func (h *metricHistory) serve(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	points := append([]historyPoint{}, h.points...)
	h.mu.Unlock()
	httpserve.WriteJSON(w, http.StatusOK, map[string]any{"every_s": int(historyEvery.Seconds()), "points": points})
}

type gathered struct {
	at       time.Time
	families map[string]*dto.MetricFamily
}

func (g *gathered) point(before *gathered) historyPoint {
	p := historyPoint{At: g.at}
	from := func(source string) *float64 {
		of := func(l labels) bool { return l["source"] == source }
		return total(g.rate(before, "rankcache_requests_total", of), g.rate(before, "rankcache_rpc_reads_total", of), g.respReads(before, source))
	}
	p.Local, p.Hot, p.Redis = from("local"), from("hot"), from("redis")
	p.RedisCalls = total(g.rate(before, "rankcache_redis_seconds", func(labels) bool { return true }), g.respReads(before, "redis"))
	p.Failed = total(g.rate(before, "rankcache_requests_total", func(l labels) bool { return failedResults[l["result"]] }),
		g.rate(before, "rankcache_rpc_duration_seconds", func(l labels) bool { return failedResults[l["code"]] }))
	p.Updates = g.rate(before, "rankcache_replay_updates_total", func(l labels) bool { return l["result"] == "applied" })
	p.AgeS, p.Behind = g.highest("rankcache_board_age_seconds"), g.highest("rankcache_replay_lag_updates")
	for _, family := range []string{"rankcache_request_duration_seconds", "rankcache_resp_answer_duration_seconds", "rankcache_rpc_duration_seconds"} {
		if v := g.p99(before, family); v != nil && (p.P99Ms == nil || *v > *p.P99Ms) {
			p.P99Ms = v
		}
	}
	p.RedisP99Ms = g.p99(before, "rankcache_origin_call_duration_seconds")
	return p
}

// respReads returns the reads of boards over RESP per second; other commands are writes, or of no board.
func (g *gathered) respReads(before *gathered, source string) *float64 {
	return g.rate(before, "rankcache_resp_commands_total", func(l labels) bool { return l["source"] == source && strings.HasPrefix(l["command"], "z") })
}

// total adds up what there is; nil if there is nothing.
func total(all ...*float64) (sum *float64) {
	for _, v := range all {
		switch {
		case v != nil && sum != nil:
			*sum += *v
		case v != nil:
			sum = v
		}
	}
	return sum
}

// failedResults are the codes of answers that a caller can't help: 500 and more.
var failedResults = map[string]bool{"origin_unavailable": true, "overloaded": true, "internal": true, "profiles_unavailable": true, "unavailable": true}

type labels map[string]string // of a metric by name

func labelsOf(m *dto.Metric) labels {
	all := make(labels, len(m.Label))
	for _, l := range m.Label {
		all[l.GetName()] = l.GetValue()
	}
	return all
}

// sum adds up the counters of a family that are wanted, or the observations of its histograms; false if there is none.
func (g *gathered) sum(family string, want func(labels) bool) (sum float64, any bool) {
	for _, m := range g.families[family].GetMetric() {
		if want(labelsOf(m)) {
			sum, any = sum+m.GetCounter().GetValue()+float64(m.GetHistogram().GetSampleCount()), true
		}
	}
	return sum, any
}

// rate returns a rise per second, nil: none. Counters of boards that have gone take their count along: at least 0.
func (g *gathered) rate(before *gathered, family string, want func(labels) bool) *float64 {
	now, any := g.sum(family, want)
	if !any {
		return nil
	}
	was, _ := before.sum(family, want)
	rate := max(0, now-was) / g.at.Sub(before.at).Seconds()
	return &rate
}

// highest returns the highest gauge of a family; nil if there is none.
func (g *gathered) highest(family string) *float64 {
	var highest *float64
	for _, m := range g.families[family].GetMetric() {
		if v := m.GetGauge().GetValue(); highest == nil || v > *highest {
			highest = &v
		}
	}
	return highest
}

// p99 returns in milliseconds the bound of the bucket that has 99 of 100 observations since before; nil: none.
func (g *gathered) p99(before *gathered, family string) *float64 {
	counts, bounds := buckets(g.families[family])
	was, _ := buckets(before.families[family])
	if len(counts) == 0 {
		return nil
	}
	for bound := range counts {
		counts[bound] -= min(was[bound], counts[bound])
	}
	total := counts[math.Inf(1)]
	if total == 0 {
		return nil
	}
	for _, bound := range bounds {
		if counts[bound] >= 0.99*total {
			ms := bound * 1000
			return &ms
		}
	}
	ms := bounds[len(bounds)-1] * 1000
	return &ms
}

// buckets adds up the histograms of a family: how many observations were at or below each bound, and in all (+Inf).
func buckets(family *dto.MetricFamily) (counts map[float64]float64, bounds []float64) {
	counts = make(map[float64]float64)
	for i, m := range family.GetMetric() {
		h := m.GetHistogram()
		for _, b := range h.GetBucket() {
			if !math.IsInf(b.GetUpperBound(), 1) {
				counts[b.GetUpperBound()] += float64(b.GetCumulativeCount())
				if i == 0 {
					bounds = append(bounds, b.GetUpperBound())
				}
			}
		}
		counts[math.Inf(1)] += float64(h.GetSampleCount())
	}
	if len(bounds) == 0 {
		return nil, nil
	}
	return counts, bounds
}
