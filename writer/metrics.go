package writer

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"rankcache/wire"
)

type metrics struct {
	commands *prometheus.CounterVec // by result
	refused  *prometheus.CounterVec // by reason
	fed      *prometheus.CounterVec // by result
	// refusedLost counts refused posts that Kafka did not take.
	refusedLost prometheus.Counter
	published   prometheus.Counter
	adoptions   prometheus.Counter
	waits       prometheus.Counter
	fullest     *fullest
	ties        prometheus.Counter
	guards      *prometheus.CounterVec // by limit and action
	trims       prometheus.Counter
	gains       *gains
	topics      prometheus.Counter
	retries     *prometheus.CounterVec // by the server that failed
	apply       prometheus.Histogram
	publish     prometheus.Histogram
	batch       prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	seconds := prometheus.ExponentialBuckets(0.0005, 2.5, 10) // 0.5 ms to 1.9 s
	return &metrics{
		commands: f.NewCounterVec(prometheus.CounterOpts{Name: "rankcache_write_commands_total",
			Help: "Commands by result: applied, duplicate, refused."}, []string{"result"}),
		refused: f.NewCounterVec(prometheus.CounterOpts{Name: "rankcache_write_refused_total",
			Help: "Commands that were not applied, by reason."}, []string{"reason"}),
		fed: f.NewCounterVec(prometheus.CounterOpts{Name: "rankcache_write_fed_total",
			Help: "Changes of boards that a command's class feeds, by result: applied, duplicate, refused."}, []string{"result"}),
		refusedLost: f.NewCounter(prometheus.CounterOpts{Name: "rankcache_write_refused_unpublished_total",
			Help: "Refused posts that Kafka did not take in time; their callers got the refusal."}),
		adoptions: f.NewCounter(prometheus.CounterOpts{Name: "rankcache_write_adoptions_total",
			Help: "Boards whose members were added up because another client had made or changed them."}),
		waits: f.NewCounter(prometheus.CounterOpts{Name: "rankcache_write_waits_total",
			Help: "Commands that waited until their board was adopted."}),
		ties: f.NewCounter(prometheus.CounterOpts{Name: "rankcache_write_ties_unranked_total",
			Help: "Changes of boards with ties first or last beyond those that the fraction of a score can distinguish: these members tie among themselves."}),
		guards: f.NewCounterVec(prometheus.CounterOpts{Name: "rankcache_write_guard_total",
			Help: "Commands beyond a guard of their class, by limit (changes, members) and action: observe (applied), refuse."}, []string{"limit", "action"}),
		gains: &gains{highest: f.NewGauge(prometheus.GaugeOpts{Name: "rankcache_write_gain_highest",
			Help: "Highest gain of one member on one board in the running clock hour, by increments that this writer applied; boards of classes with a guard."})},
		trims: f.NewCounter(prometheus.CounterOpts{Name: "rankcache_write_trims_total",
			Help: "Members that were driven out of boards that keep only their best."}),
		fullest: &fullest{gauge: f.NewGauge(prometheus.GaugeOpts{Name: "rankcache_write_orders_fullest",
			Help: "Order ids in the fullest hash that was seen in the last ten minutes: one command a second is sampled. More than 100,000: raise --order-buckets."})},
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
	m.commands.WithLabelValues(o.result()).Inc()
}

// note counts what a guard, trim and ties had to do with a job that Redis has decided.
func (m *metrics) note(j *job, now time.Time) {
	switch {
	case j.Beyond != "" && j.Refusal != nil:
		m.guards.WithLabelValues(j.Beyond, "refuse").Inc()
	case j.Beyond != "":
		m.guards.WithLabelValues(j.Beyond, "observe").Inc()
	}
	if j.Refusal != nil || j.Duplicate {
		return
	}
	m.trims.Add(float64(len(j.Trims)))
	if j.rules.features().Guard && j.Op == wire.OpIncr && j.Number > 0 {
		m.gains.note(j.Board, j.Member, j.Number, now)
	}
	if j.Op != wire.OpDelete && j.rules.features().Ties && j.Update.Seq >= wire.TieLimit(j.Update.Score) {
		m.ties.Inc()
	}
}

// result is that of a command in the metrics.
func (o *Outcome) result() string {
	switch {
	case o.Refusal != nil:
		return "refused"
	case o.Duplicate:
		return "duplicate"
	}
	return "applied"
}

func (m *metrics) countFed(o *Outcome) { m.fed.WithLabelValues(o.result()).Inc() }

func (m *metrics) countRefusal(r *Refusal) {
	m.commands.WithLabelValues("refused").Inc()
	m.refused.WithLabelValues(r.Reason).Inc()
}

// fullestAge is how long the fullest hash is shown.
const fullestAge = 10 * time.Minute

// fullest shows the highest of the numbers noted lately. It is safe for concurrent use.
type fullest struct {
	gauge prometheus.Gauge
	mu    sync.Mutex // nothing but the gauge is called under it
	n     int64
	at    time.Time
}

func (f *fullest) note(n int64, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n >= f.n || at.Sub(f.at) > fullestAge {
		f.n, f.at = n, at
		f.gauge.Set(float64(n))
	}
}
