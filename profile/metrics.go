package profile

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	hits, stale, negative, misses prometheus.Counter // of lookups
	missing                       prometheus.Counter
	overflow                      prometheus.Counter
	evictions                     prometheus.Counter
	loads                         *prometheus.CounterVec // by result
	refused                       prometheus.Counter     // one of loads
	badProfiles                   *prometheus.CounterVec // by kind
	batch, seconds                prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, c *Cache) *metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: "rankcache_profile_" + name, Help: help})
	}
	vec := func(name, help, label string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: "rankcache_profile_" + name, Help: help}, []string{label})
	}
	lookups := vec("lookups_total", "Rows looked up in the cache: hit, stale (served and refreshed), negative (known to have no profile), miss.", "result")
	loads := vec("loads_total", "Calls of the profile service: ok, timeout, unavailable, refused (by the circuit breaker), or the kind of a bad answer.", "result")
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "rankcache_profile_bytes", Help: "Heap that the cached profiles cost."},
		func() float64 { return float64(c.store.Load().used()) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "rankcache_profile_breaker", Help: "Circuit breaker before the profile service: 0 closed, 1 trying, 2 open."},
		func() float64 { return float64(c.breaker.State()) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "rankcache_profile_pending", Help: "Members that wait for a call of the profile service."}, c.pending)
	return &metrics{
		hits:        lookups.WithLabelValues("hit"),
		stale:       lookups.WithLabelValues("stale"),
		negative:    lookups.WithLabelValues("negative"),
		misses:      lookups.WithLabelValues("miss"),
		missing:     counter("missing_total", "Rows answered without a profile because it was not loaded in time."),
		overflow:    counter("overflow_total", "Members not asked for because too many were waiting."),
		evictions:   counter("evictions_total", "Profiles evicted to make room."),
		loads:       loads,
		refused:     loads.WithLabelValues("refused"),
		badProfiles: vec("bad_profiles_total", "Single profiles of otherwise good answers that were thrown away, by kind.", "kind"),
		batch: f.NewHistogram(prometheus.HistogramOpts{Name: "rankcache_profile_batch_members", Help: "Members asked for in one call.",
			Buckets: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500}}),
		seconds: f.NewHistogram(prometheus.HistogramOpts{Name: "rankcache_profile_load_seconds", Help: "Time of one call of the profile service.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 10)}), // 0.5 ms to 1.9 s
	}
}

// tally is what one page's lookups found. Counted here first, because a page
// would otherwise touch shared counters once per row.
type tally struct{ hits, stale, negative int }

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

func (c *Cache) pending() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return float64(c.queue.members)
}
