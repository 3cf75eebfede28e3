package writer

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	commands  *prometheus.CounterVec // by result
	refused   *prometheus.CounterVec // by reason
	published prometheus.Counter
	topics    prometheus.Counter
	retries   *prometheus.CounterVec // by the server that failed
	apply     prometheus.Histogram
	publish   prometheus.Histogram
	batch     prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	seconds := prometheus.ExponentialBuckets(0.0005, 2.5, 10) // 0.5 ms to 1.9 s
	return &metrics{
		commands: f.NewCounterVec(prometheus.CounterOpts{Name: "rankcache_write_commands_total",
			Help: "Commands by result: applied, duplicate, refused."}, []string{"result"}),
		refused: f.NewCounterVec(prometheus.CounterOpts{Name: "rankcache_write_refused_total",
			Help: "Commands that were not applied, by reason."}, []string{"reason"}),
		published: f.NewCounter(prometheus.CounterOpts{Name: "rankcache_write_updates_published_total",
			Help: "Updates acknowledged by Kafka."}),
		topics: f.NewCounter(prometheus.CounterOpts{Name: "rankcache_write_topics_created_total",
			Help: "Topics created because they were missing."}),
		retries: f.NewCounterVec(prometheus.CounterOpts{Name: "rankcache_write_retries_total",
			Help: "Attempts that failed and were repeated, by server: redis, kafka."}, []string{"of"}),
		apply: f.NewHistogram(prometheus.HistogramOpts{Name: "rankcache_write_apply_seconds",
			Help: "Time until Redis answered one batch, retries included.", Buckets: seconds}),
		publish: f.NewHistogram(prometheus.HistogramOpts{Name: "rankcache_write_publish_seconds",
			Help: "Time until Kafka acknowledged the updates of one batch, retries included.", Buckets: seconds}),
		batch: f.NewHistogram(prometheus.HistogramOpts{Name: "rankcache_write_batch_commands",
			Help: "Records per batch from Kafka.", Buckets: prometheus.ExponentialBuckets(1, 4, 6)}),
	}
}

func (m *metrics) countOutcome(o *Outcome) {
	switch {
	case o.Refusal != nil:
		m.countRefusal(o.Refusal)
	case o.Duplicate:
		m.commands.WithLabelValues("duplicate").Inc()
	default:
		m.commands.WithLabelValues("applied").Inc()
	}
}

func (m *metrics) countRefusal(r *Refusal) {
	m.commands.WithLabelValues("refused").Inc()
	m.refused.WithLabelValues(r.Reason).Inc()
}
