package profile

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"rankcache/internal/metric"
)

type metrics struct {
	hits, stale, negative, misses prometheus.Counter // of lookups
	missing, overflow, evictions  prometheus.Counter
	loads                         *prometheus.CounterVec // by result
	refused                       prometheus.Counter     // one of loads
	badProfiles                   *prometheus.CounterVec // by kind
	batch, seconds                prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	set := metric.New(reg, "profile_")
	defer set.Must()
	lookups := set.Counters("lookups_total", "Rows looked up in the cache: hit, stale (served and refreshed), negative (known to have no profile), miss.", "result")
	loads := set.Counters("loads_total", "Calls of the profile service: ok, timeout, unavailable, refused (by the circuit breaker), or the kind of a bad answer.", "result")
	return &metrics{
		hits:        lookups.WithLabelValues("hit"),
		stale:       lookups.WithLabelValues("stale"),
		negative:    lookups.WithLabelValues("negative"),
		misses:      lookups.WithLabelValues("miss"),
		missing:     set.Counter("missing_total", "Rows answered without a profile because it was not loaded in time."),
		overflow:    set.Counter("overflow_total", "Members not loaded because too many were waiting."),
		evictions:   set.Counter("evictions_total", "Profiles evicted to make room."),
		loads:       loads,
		refused:     loads.WithLabelValues("refused"),
		badProfiles: set.Counters("bad_profiles_total", "Invalid profiles in otherwise valid answers, by kind.", "kind"),
		batch:       set.Histogram("batch_members", "Members in one call of the profile service.", []float64{1, 2, 5, 10, 20, 50, 100, 200, 500}),
		seconds:     set.Histogram("load_seconds", "Time of one call of the profile service.", prometheus.ExponentialBuckets(0.0005, 2.5, 10)), // 0.5 ms to 1.9 s
	}
}

// registerGauges registers the metrics that are read from the cache when it is scraped.
func registerGauges(reg prometheus.Registerer, c *Cache) {
	set := metric.New(reg, "profile_")
	set.GaugeFunc("bytes", "Heap that the cached profiles take.", func() float64 { return float64(c.store.used()) })
	set.GaugeFunc("breaker", "Circuit breaker before the profile service: 0 closed, 1 trying, 2 open.",
		func() float64 { return float64(c.loader.source.breaker.State()) })
	set.GaugeFunc("pending", "Members that wait for a call of the profile service.", func() float64 { return float64(c.loader.pending()) })
	set.Must()
}

type tally struct{ hits, stale, negative int } // counts one page's results, so that it touches the shared counters once

func (t *tally) count(e entry, state freshness) {
	switch {
	case e.head.json == 0:
		t.negative++
	case state == stale:
		t.stale++
	default:
		t.hits++
	}
}

func (m *metrics) looked(t tally, misses int) {
	add(m.hits, t.hits)
	add(m.stale, t.stale)
	add(m.negative, t.negative)
	add(m.misses, misses)
}

func add(c prometheus.Counter, n int) {
	if n > 0 {
		c.Add(float64(n))
	}
}

func (m *metrics) loaded(members int, took time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = kindOf(err)
	}
	m.loads.WithLabelValues(result).Inc()
	m.batch.Observe(float64(members))
	m.seconds.Observe(took.Seconds())
}

func (m *metrics) badProfile(err error) { m.badProfiles.WithLabelValues(kindOf(err)).Inc() }

// Stats is the state of a [Cache] at one moment, for operators. Counts are since the start.
type Stats struct {
	Bytes   int64  `json:"bytes"`  // heap that the cached profiles cost
	Budget  int64  `json:"budget"` // heap that the whole cache may take
	Hits    uint64 `json:"hits"`   // rows answered with a fresh profile, or known to have none
	Stale   uint64 `json:"stale"`  // rows answered with an expired profile that is being refreshed
	Misses  uint64 `json:"misses"`
	Missing uint64 `json:"missing"` // misses that were not loaded in time
	Pending int    `json:"pending"` // members that wait for a call of the source
	Loads   uint64 `json:"loads"`   // calls of the source, failed ones included
	Failed  uint64 `json:"failed"`
	Evicted uint64 `json:"evicted"`
	Breaker string `json:"breaker"` // before the source: closed, half-open or open
}

// Stats returns the state of the cache. It may be called by any goroutine, also before Run.
func (c *Cache) Stats() Stats {
	m := c.metrics
	s := Stats{Bytes: c.store.used(), Budget: c.opts.Budget, Pending: c.loader.pending(), Breaker: c.loader.source.breaker.State().String(),
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
