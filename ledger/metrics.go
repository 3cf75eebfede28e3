package ledger

import (
	"github.com/prometheus/client_golang/prometheus"

	"rankcache/internal/metric"
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
	set := metric.New(reg, "ledger_")
	defer set.Must()
	seconds := prometheus.ExponentialBuckets(0.001, 2.5, 12) // 1 ms to 24 s
	m := &metrics{
		rows:        set.Counters("rows_total", "Changes by result: written, repeated (they were there), lost (moved to rank_lost, because Redis has another history), bad (kept in rank_bad).", "result"),
		bad:         set.Counters("bad_total", "Records that are not changes, by reason.", "reason"),
		lag:         set.Gauges("lag_records", "Records that the database does not have yet, by partition that this process reads.", "partition"),
		delay:       set.Histogram("delay_seconds", "Time from the oldest record of a batch, as Kafka has it, until the batch is in the database.", seconds),
		apply:       set.Histogram("apply_seconds", "Time until a batch was in the database, retries included.", seconds),
		retries:     set.Counters("retries_total", "Attempts that failed and were repeated, by server: database, kafka.", "of"),
		overtaken:   set.Counter("overtaken_total", "Batches that were rolled back because the database's offsets were ahead: another consumer is active, or the answer of a commit was lost."),
		gaps:        set.Counter("skipped_offsets_total", "Offsets that Kafka removed before they were read: the topic's retention is shorter than the database was away."),
		removed:     set.Counter("removed_total", "Rows of rank_log that were removed by --ledger-keep."),
		pending:     set.Gauge("redress_pending", "Changes that Redis has lost and that are to be applied again. All ledgers of a database show the same."),
		redressed:   set.Counter("redressed_total", "Changes that Redis had lost and that were applied again."),
		unredressed: set.Counters("unredressed_total", "Changes that Redis has lost and that are not applied again, by reason: changed (the member was set or deleted since, or changed at all behind a set or delete), raced (it is applied, but behind such a change), too_old, closed, gone (the board), no_order.", "reason"),
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
