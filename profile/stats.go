package profile

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Stats is a [Cache] at one moment, for people who look at it. Counts are since
// the start.
type Stats struct {
	Bytes   int64  `json:"bytes"`  // heap that the cached profiles cost
	Budget  int64  `json:"budget"` // heap that the whole cache may take
	Hits    uint64 `json:"hits"`   // rows answered with a fresh profile, or known to have none
	Stale   uint64 `json:"stale"`  // answered with an expired one that is being refreshed
	Misses  uint64 `json:"misses"`
	Missing uint64 `json:"missing"` // misses that did not come in time
	Pending int    `json:"pending"` // members that wait for a call of the source
	Loads   uint64 `json:"loads"`   // calls of the source, those that failed included
	Failed  uint64 `json:"failed"`
	Evicted uint64 `json:"evicted"`
	Breaker string `json:"breaker"` // before the source: closed, half-open or open
}

// Stats returns what the cache holds and has done. It may be called by any
// goroutine, also before Run.
func (c *Cache) Stats() Stats {
	m := c.metrics
	s := Stats{Bytes: c.store.Load().used(), Budget: c.opts.Budget, Pending: int(c.pending()), Breaker: c.breaker.State().String(),
		Hits: count(m.hits) + count(m.negative), Stale: count(m.stale), Misses: count(m.misses),
		Missing: count(m.missing), Evicted: count(m.evictions)}
	s.Loads, s.Failed = m.calls()
	return s
}

// calls adds up the calls of the source over their results.
func (m *metrics) calls() (all, failed uint64) {
	results := make(chan prometheus.Metric, 16)
	go func() { m.loads.Collect(results); close(results) }()
	for metric := range results {
		var d dto.Metric
		if metric.Write(&d) != nil {
			continue
		}
		n := uint64(d.GetCounter().GetValue())
		all += n
		if label := d.GetLabel(); len(label) > 0 && label[0].GetValue() != "ok" {
			failed += n
		}
	}
	return all, failed
}

func count(c prometheus.Counter) uint64 {
	var d dto.Metric
	if c.Write(&d) != nil {
		return 0
	}
	return uint64(d.GetCounter().GetValue())
}
