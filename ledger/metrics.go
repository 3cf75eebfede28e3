package ledger

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	rows      *prometheus.CounterVec // by what became of the record
	bad       *prometheus.CounterVec // by reason
	lag       *prometheus.GaugeVec   // by partition
	delay     prometheus.Histogram
	apply     prometheus.Histogram
	retries   *prometheus.CounterVec // by the server that failed
	overtaken prometheus.Counter
	gaps      prometheus.Counter
	removed   prometheus.Counter

	pending     prometheus.Gauge
	redressed   prometheus.Counter
	unredressed *prometheus.CounterVec // by reason
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	seconds := prometheus.ExponentialBuckets(0.001, 2.5, 12) // 1 ms to 24 s
	m := &metrics{
		rows: f.NewCounterVec(prometheus.CounterOpts{Name: "rankcache_ledger_rows_total",
			Help: "Changes by result: written, repeated (they were there), lost (moved to rank_lost, because Redis has another history), bad (kept in rank_bad)."}, []string{"result"}),
		bad: f.NewCounterVec(prometheus.CounterOpts{Name: "rankcache_ledger_bad_total",
			Help: "Records that are not changes, by reason."}, []string{"reason"}),
		lag: f.NewGaugeVec(prometheus.GaugeOpts{Name: "rankcache_ledger_lag_records",
			Help: "Records that the database does not have yet, by partition that this process reads."}, []string{"partition"}),
		delay: f.NewHistogram(prometheus.HistogramOpts{Name: "rankcache_ledger_delay_seconds",
			Help: "Time from the oldest record of a batch, as Kafka has it, until the batch is in the database.", Buckets: seconds}),
		apply: f.NewHistogram(prometheus.HistogramOpts{Name: "rankcache_ledger_apply_seconds",
			Help: "Time until a batch was in the database, retries included.", Buckets: seconds}),
		retries: f.NewCounterVec(prometheus.CounterOpts{Name: "rankcache_ledger_retries_total",
			Help: "Attempts that failed and were repeated, by server: database, kafka."}, []string{"of"}),
		overtaken: f.NewCounter(prometheus.CounterOpts{Name: "rankcache_ledger_overtaken_total",
			Help: "Batches that were rolled back because the database's offsets were ahead: another consumer is active, or the answer of a commit was lost."}),
		gaps: f.NewCounter(prometheus.CounterOpts{Name: "rankcache_ledger_skipped_offsets_total",
			Help: "Offsets that Kafka removed before they were read: the topic's retention is shorter than the database was away."}),
		removed: f.NewCounter(prometheus.CounterOpts{Name: "rankcache_ledger_removed_total",
			Help: "Rows of rank_log that were removed by --ledger-keep."}),
		pending: f.NewGauge(prometheus.GaugeOpts{Name: "rankcache_ledger_redress_pending",
			Help: "Changes that Redis has lost and that are to be applied again. All ledgers of a database show the same."}),
		redressed: f.NewCounter(prometheus.CounterOpts{Name: "rankcache_ledger_redressed_total",
			Help: "Changes that Redis had lost and that were applied again."}),
		unredressed: f.NewCounterVec(prometheus.CounterOpts{Name: "rankcache_ledger_unredressed_total",
			Help: "Changes that Redis has lost and that are not applied again, by reason: changed (the member was set or deleted since, or changed at all behind a set or delete), raced (it is applied, but behind such a change), too_old, closed, gone (the board), no_order."}, []string{"reason"}),
	}
	for _, reason := range []string{lostChanged, lostRaced, lostTooOld, lostClosed, lostGone, lostNoOrder} {
		m.unredressed.WithLabelValues(reason)
	}
	for _, result := range []string{"written", "repeated", "lost", "bad"} {
		m.rows.WithLabelValues(result)
	}
	return m
}

func (m *metrics) count(done *Result) {
	m.rows.WithLabelValues("written").Add(float64(done.Rows))
	m.rows.WithLabelValues("repeated").Add(float64(done.Repeats))
	m.rows.WithLabelValues("lost").Add(float64(done.Lost))
	m.rows.WithLabelValues("bad").Add(float64(done.Bad))
}
