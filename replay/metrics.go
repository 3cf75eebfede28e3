package replay

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counters of a Runner. Values per board are collected at each
// scrape, so that a board that is dropped leaves no series behind.
type metrics struct {
	records     prometheus.Counter
	skipped     *prometheus.CounterVec // by reason, a fixed few
	snapshots   prometheus.Counter
	refills     prometheus.Counter
	stales      prometheus.Counter
	kafkaErrors prometheus.Counter
	redisErrors prometheus.Counter

	// Of the audit:
	checks      *prometheus.CounterVec // by result
	compared    prometheus.Counter
	differences *prometheus.CounterVec // by kind, a fixed few
	repairs     prometheus.Counter
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "rankcache_" + name, Help: help})
	}
	by := func(label, name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rankcache_" + name, Help: help}, []string{label})
	}
	m := &metrics{
		records:     counter("replay_records_total", "Records read from update topics."),
		skipped:     by("reason", "replay_skipped_records_total", "Records that were not applied, by reason."),
		snapshots:   counter("replay_snapshots_total", "Boards loaded from Redis because the log could not give them."),
		refills:     counter("replay_refills_total", "Open boards that were closed and filled again."),
		stales:      counter("replay_stale_opens_total", "Boards answered from their files because Redis did not answer."),
		kafkaErrors: counter("replay_kafka_errors_total", "Errors of the Kafka client and failed requests to Kafka."),
		redisErrors: counter("replay_redis_errors_total", "Reads of totals that Redis did not answer in full."),
		checks:      by("result", "audit_checks_total", "Comparisons of open boards with Redis, by result; unknown is one that could not be made."),
		compared:    counter("audit_members_total", "Members compared with Redis."),
		differences: by("kind", "audit_differences_total", "Differences found between boards and Redis, by kind."),
		repairs:     counter("audit_repairs_total", "Members repaired with their state in Redis."),
	}
	m.presetLabels()
	return m
}

// presetLabels makes the series with 0, so that the first count shows as a rise.
func (m *metrics) presetLabels() {
	for _, kind := range kinds {
		m.differences.WithLabelValues(kind)
	}
	for _, reason := range skipReasons {
		m.skipped.WithLabelValues(reason)
	}
}

func (m *metrics) register(reg prometheus.Registerer) (err error) {
	for _, c := range []prometheus.Collector{m.records, m.skipped, m.snapshots, m.refills, m.stales, m.kafkaErrors, m.redisErrors,
		m.checks, m.compared, m.differences, m.repairs} {
		err = errors.Join(err, reg.Register(c))
	}
	return err
}

var (
	updatesDesc = prometheus.NewDesc("rankcache_replay_updates_total", "Updates of a board, by result: applied, duplicate or stale (its member has a later one).", []string{"board", "result"}, nil)
	stateDesc   = prometheus.NewDesc("rankcache_replay_board_state", "1 for the state that a board is in.", []string{"board", "state"}, nil)
	lagDesc     = prometheus.NewDesc("rankcache_replay_lag_updates", "Updates that the board lacks of those that Redis had when its total was last read; absent while Redis does not answer.", []string{"board"}, nil)
	memberDesc  = prometheus.NewDesc("rankcache_replay_members", "Members on a board.", []string{"board"}, nil)
	auditDesc   = prometheus.NewDesc("rankcache_audit_last_timestamp_seconds", "When an open board was last compared with Redis.", []string{"board"}, nil)
	offsetDesc  = prometheus.NewDesc("rankcache_replay_offset", "Offset up to which a partition has been applied.", []string{"topic", "partition"}, nil)
)

// collector collects the values of the boards and partitions that are followed.
type collector struct{ feeds *feeds }

func (collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{updatesDesc, stateDesc, lagDesc, memberDesc, auditDesc, offsetDesc} {
		out <- d
	}
}

func (c collector) Collect(out chan<- prometheus.Metric) {
	topics := make(map[*topic]bool)
	for _, f := range c.feeds.sorted() {
		f.collect(out)
		if t := f.sources.topic(); t != nil && !topics[t] {
			topics[t] = true // two boards may share it
			t.collect(out)
		}
	}
}

func (f *feed) collect(out chan<- prometheus.Metric) {
	board := string(f.id)
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, float64(v), labels...)
	}
	send(updatesDesc, prometheus.CounterValue, f.replica.counts.applied.Load(), board, "applied")
	send(updatesDesc, prometheus.CounterValue, f.replica.counts.duplicate.Load(), board, "duplicate")
	send(updatesDesc, prometheus.CounterValue, f.replica.counts.stale.Load(), board, "stale")
	s := f.describe()
	send(stateDesc, prometheus.GaugeValue, 1, board, string(s.State))
	send(memberDesc, prometheus.GaugeValue, uint64(s.Members), board)
	if !s.Audit.At.IsZero() {
		send(auditDesc, prometheus.GaugeValue, uint64(s.Audit.At.Unix()), board)
	}
	if latest, _ := f.sources.totals(); f.sources.redisKnown(time.Now()) {
		have := f.replica.board.Progress().Applied()
		send(lagDesc, prometheus.GaugeValue, max(latest.seq, have)-have, board)
	}
}

func (t *topic) collect(out chan<- prometheus.Metric) {
	for _, p := range t.partitions() {
		out <- prometheus.MustNewConstMetric(offsetDesc, prometheus.GaugeValue, float64(p.next.Load()), t.name, strconv.Itoa(int(p.number)))
	}
}
