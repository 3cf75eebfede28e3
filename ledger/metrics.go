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
	replaced  prometheus.Counter
	removed   prometheus.Counter
	reborn    prometheus.Counter
	pending   prometheus.Gauge
	wrong     prometheus.Gauge
	differs   prometheus.Gauge // boards
	left      prometheus.Gauge // in rank_bad
	lost      prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	set := metric.New(reg, "ledger_")
	defer set.Must()
	seconds := prometheus.ExponentialBuckets(0.001, 2.5, 12) // 1 ms to 24 s
	m := &metrics{
		rows:      set.Counters("rows_total", "Changes by result: written, repeated (they were there), aside (moved to rank_lost, because Redis does not have them any more), bad (kept in rank_bad).", "result"),
		bad:       set.Counters("bad_total", "Records that are not changes, by reason.", "reason"),
		lag:       set.Gauges("lag_records", "Records that the database does not have yet, by partition that this process reads, each second: also while it does not answer.", "partition"),
		delay:     set.Histogram("delay_seconds", "Time from the oldest record of a batch, as Kafka has it, until the batch is in the database.", seconds),
		apply:     set.Histogram("apply_seconds", "Time until a batch was in the database, retries included.", seconds),
		retries:   set.Counters("retries_total", "Attempts that failed and were repeated, by server: database, kafka.", "of"),
		overtaken: set.Counter("overtaken_total", "Batches that were rolled back because the database's offsets were ahead: another consumer is active, or the answer of a commit was lost."),
		gaps:      set.Counter("skipped_offsets_total", "Offsets that Kafka removed before they were read: the topic's retention is shorter than the database was away."),
		replaced:  set.Counter("replaced_partitions_total", "Partitions whose topic was deleted and made again: what the ledger had not read of the former one is not in it, the new one is read from its beginning."),
		removed:   set.Counter("removed_total", "Rows of rank_log that were removed by --ledger-keep."),
		reborn:    set.Counter("reborn_boards_total", "Boards that began again with their first change: their keys had expired, or were deleted."),
		pending:   set.Gauge("pending", "Changes that Redis does not have any more and that may be applied again. All ledgers of a database show the same."),
		wrong:     set.Gauge("wrong", "Changes that are set aside for more than ten minutes though Redis has their order ids: the ledger takes another history for the one that stands. All ledgers of a database show the same."),
		differs:   set.Gauge("differs", "Boards that Redis has with another checksum than the ledger at the same change, or with changes that don't reach the ledger, up to 20: some are compared each minute, by the ledger of partition 0."),
		left:      set.Gauge("bad_left", "Records in rank_bad, which this version can't read. All ledgers of a database show the same."),
		lost:      set.Counter("lost_total", "Changes that Redis has lost and that were not applied again within ten minutes: they are in rank_lost."),
	}
	for _, result := range []string{"written", "repeated", "aside", "bad"} {
		m.rows.WithLabelValues(result)
	}
	return m
}

func (m *metrics) count(done *Result) {
	m.rows.WithLabelValues("written").Add(float64(done.Rows))
	m.rows.WithLabelValues("repeated").Add(float64(done.Repeats))
	m.rows.WithLabelValues("aside").Add(float64(done.Aside))
	m.rows.WithLabelValues("bad").Add(float64(done.Bad))
	m.reborn.Add(float64(done.Reborn))
}
