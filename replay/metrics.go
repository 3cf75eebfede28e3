package replay

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Kinds of differences between an open board and Redis, as metrics count them.
const (
	kindScore    = "score"    // a member has another score
	kindData     = "data"     // a member has other data
	kindMissing  = "missing"  // a member of Redis's is not here
	kindExtra    = "extra"    // a member is here and not in Redis
	kindMembers  = "members"  // another number of members
	kindRank     = "rank"     // a member with the right score has another rank
	kindHole     = "hole"     // an update does not come
	kindAhead    = "ahead"    // Redis's total fell below what was applied
	kindGone     = "gone"     // Redis no longer has the board
	kindRun      = "run"      // Redis began the board anew, or lost such a beginning
	kindPast     = "past"     // something has changed the board in Redis past rankcache: it was added up anew, or has to be
	kindSum      = "sum"      // another checksum at the same seq
	kindRefuted  = "refuted"  // an update gives another checksum than it carries
	kindOverflow = "overflow" // too many updates came ahead of a missing one
	kindMemory   = "memory"   // the members don't add up to the checksum that was kept
)

var kinds = []string{kindScore, kindData, kindMissing, kindExtra, kindMembers, kindRank, kindHole, kindAhead, kindGone, kindRun, kindPast, kindSum, kindRefuted, kindOverflow, kindMemory}

// Kinds of reasons, beside those above, for which a file turned out void that could be read.
const (
	kindTopic = "topic" // it is of another topic
	kindLog   = "log"   // the log lacks the records after it
	kindProof = "proof" // with the rest of the log its board is not Redis's
)

var voidKinds = []string{kindSum, kindTopic, kindLog, kindProof, kindGone, kindRun, kindAhead}

// Reasons for which a record is skipped, beside those of a [wire.BadUpdate].
const (
	skipNotFollowed = "not-followed"
	skipOther       = "other"
)

var skipReasons = []string{"size", "json", "version", "board", "member", "op", "score", "order", skipNotFollowed, skipOther}

// Results of comparisons, as metrics count them.
const (
	resultEqual     = "equal"
	resultDifferent = "different"
	resultUnknown   = "unknown"
)

// Who has read a state from Redis, as metrics count it.
const sourceRedis, sourceKeeper = "redis", "keeper"

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
		redisErrors:    counter("replay_redis_errors_total", "Reads of totals, or of the log in Redis, that Redis did not answer in full."),
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
