package replay

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are a Runner's counters. Values per board are collected at each scrape: dropped boards leave no series.
type metrics struct {
	records     prometheus.Counter
	skipped     *prometheus.CounterVec // by reason, a fixed few
	snapshots   prometheus.Counter
	refills     prometheus.Counter
	stales      prometheus.Counter
	voidFiles   *prometheus.CounterVec // by kind, a fixed few
	visible     prometheus.Histogram
	kafkaErrors prometheus.Counter
	redisErrors prometheus.Counter

	// Of the audit:
	checks      *prometheus.CounterVec // by result
	compared    prometheus.Counter
	differences *prometheus.CounterVec // by kind, a fixed few
	// Of proof:
	sumWrong, foreignHistory prometheus.Counter
	// Of a keeper's states:
	doubts   *prometheus.CounterVec // by result
	readings *prometheus.CounterVec // by source
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "rankcache_" + name, Help: help})
	}
	by := func(label, name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rankcache_" + name, Help: help}, []string{label})
	}
	m := &metrics{
		records:        counter("replay_records_total", "Records read from update topics."),
		skipped:        by("reason", "replay_skipped_records_total", "Records that were not applied, by reason."),
		snapshots:      counter("replay_snapshots_total", "Boards loaded from Redis because the log could not give them."),
		refills:        counter("replay_refills_total", "Open boards that were closed and filled again."),
		stales:         counter("replay_stale_opens_total", "Boards answered from their files because Redis did not answer."),
		voidFiles:      by("kind", "replay_void_files_total", "Files and snapshots of boards that could be read and are void, by kind: sum (the members don't add up), topic, log (it lacks the records after it), proof (not Redis's board), gone, run or ahead (Redis has lost what is in it)."),
		kafkaErrors:    counter("replay_kafka_errors_total", "Errors of the Kafka client and failed requests to Kafka."),
		redisErrors:    counter("replay_redis_errors_total", "Reads of totals that Redis did not answer in full."),
		checks:         by("result", "audit_checks_total", "Comparisons of open boards with Redis, by result; unknown is one that could not be made."),
		compared:       counter("audit_members_total", "Members compared with Redis."),
		differences:    by("kind", "audit_differences_total", "Differences found between boards and Redis, by kind."),
		sumWrong:       counter("origin_sum_wrong_total", "Boards whose checksum in Redis is not that of their members: a score was changed past the writer."),
		readings:       by("source", "replay_readings_total", "States of boards that open boards were compared with, by who has read them from Redis: this process (redis) or a keeper."),
		doubts:         by("result", "replay_states_doubts_total", "Boards of which a keeper told something else than what was here, by what Redis had then: different, or equal to this process's."),
		foreignHistory: counter("replay_foreign_history_total", "Open boards that refuted an update of a history that Redis does not have, and stayed as they were."),
	}
	m.visible = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "rankcache_replay_visible_seconds",
		Help:    "Time from a command, by its at, until an open board has been published with its change: of the oldest one in each publication. It has the difference of the clocks in it.",
		Buckets: []float64{.005, .01, .025, .05, .075, .1, .15, .25, .5, 1, 2.5, 10, 60}})
	m.presetLabels()
	return m
}

// presetLabels makes the series with 0, so that the first count shows as a rise.
func (m *metrics) presetLabels() {
	for _, kind := range kinds {
		m.differences.WithLabelValues(kind)
	}
	for _, kind := range voidKinds {
		m.voidFiles.WithLabelValues(kind)
	}
	for _, result := range []string{resultDifferent, resultEqual} {
		m.doubts.WithLabelValues(result)
	}
	for _, source := range []string{sourceRedis, sourceKeeper} {
		m.readings.WithLabelValues(source)
	}
	for _, reason := range skipReasons {
		m.skipped.WithLabelValues(reason)
	}
}

func (m *metrics) register(reg prometheus.Registerer) (err error) {
	for _, c := range []prometheus.Collector{m.records, m.skipped, m.snapshots, m.refills, m.stales, m.voidFiles, m.visible, m.kafkaErrors, m.redisErrors,
		m.checks, m.compared, m.differences, m.doubts, m.readings, m.sumWrong, m.foreignHistory} {
		err = errors.Join(err, reg.Register(c))
	}
	return err
}
