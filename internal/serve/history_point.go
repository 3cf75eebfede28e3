package serve

import (
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// gathered is the metrics of one moment.
type gathered struct {
	at       time.Time
	families map[string]*dto.MetricFamily
}

// point returns the figures of the time since an earlier moment.
func (g *gathered) point(before *gathered) historyPoint {
	p := historyPoint{At: g.at}
	for source, to := range map[string]**float64{"local": &p.Local, "hot": &p.Hot, "redis": &p.Redis} {
		*to = g.rate(before, "rankcache_requests_total", func(l labels) bool { return l["source"] == source })
	}
	p.Failed = g.rate(before, "rankcache_requests_total", func(l labels) bool { return failedResults[l["result"]] })
	p.Updates = g.rate(before, "rankcache_replay_updates_total", func(l labels) bool { return l["result"] == "applied" })
	p.AgeS, p.Behind = g.highest("rankcache_board_age_seconds"), g.highest("rankcache_replay_lag_updates")
	p.P99Ms = g.p99(before, "rankcache_request_duration_seconds")
	p.RedisP99Ms = g.p99(before, "rankcache_origin_call_duration_seconds")
	return p
}

// failedResults are the codes of answers that a caller can't help: 500 and more.
var failedResults = map[string]bool{"origin_unavailable": true, "overloaded": true, "internal": true, "profiles_unavailable": true}

// labels of a metric by name.
type labels map[string]string

func labelsOf(m *dto.Metric) labels {
	all := make(labels, len(m.Label))
	for _, l := range m.Label {
		all[l.GetName()] = l.GetValue()
	}
	return all
}

// sum adds up the counters of a family that are wanted, false if there is none.
func (g *gathered) sum(family string, want func(labels) bool) (sum float64, any bool) {
	for _, m := range g.families[family].GetMetric() {
		if want(labelsOf(m)) {
			sum, any = sum+m.GetCounter().GetValue(), true
		}
	}
	return sum, any
}

// rate returns what the counters rose by per second; nil if there is none. Counters of boards that have gone take their
// count with them: the least is 0.
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

// p99 returns the upper bound in milliseconds of the bucket that 99 of 100 observations since before are in or below; nil
// if there were none. Above the highest bound it is that bound.
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
