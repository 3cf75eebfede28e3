package writer

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"rankcache/internal/metric"
	"rankcache/wire"
)

type metrics struct {
	commands *prometheus.CounterVec // by result
	posts    *prometheus.CounterVec // by status and reason
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
	rates       *prometheus.CounterVec // by result
	trims       prometheus.Counter
	hiddenLost  prometheus.Counter
	otherKeys   *prometheus.CounterVec // by class
	unfit       prometheus.Gauge
	gains       *gains
	topics      prometheus.Counter
	stalled     prometheus.Gauge
	retries     *prometheus.CounterVec // by the server that failed
	tooLarge    *prometheus.CounterVec // by topic
	logFailed   prometheus.Counter
	apply       prometheus.Histogram
	publish     prometheus.Histogram
	batch       prometheus.Histogram
	rewind      *rewindMetrics
}

func newMetrics(reg prometheus.Registerer) *metrics {
	set := metric.New(reg, "write_")
	defer set.Must()
	seconds := prometheus.ExponentialBuckets(0.0005, 2.5, 10) // 0.5 ms to 1.9 s
	m := &metrics{
		commands:    set.Counters("commands_total", "Commands by result: applied, duplicate, refused.", "result"),
		posts:       set.Counters("posts_total", "Posted commands by status and reason: applied, duplicate, or the code of the problem.", "status", "reason"),
		refused:     set.Counters("refused_total", "Commands that were not applied, by reason.", "reason"),
		fed:         set.Counters("fed_total", "Changes of boards that a command's class feeds, by result: applied, duplicate, refused.", "result"),
		refusedLost: set.Counter("refused_unpublished_total", "Refused posts that Kafka did not take in time; their callers got the refusal."),
		adoptions:   set.Counter("adoptions_total", "Boards whose members were added up because another client had made or changed them."),
		waits:       set.Counter("waits_total", "Commands that waited until their board was adopted."),
		ties:        set.Counter("ties_unranked_total", "Changes of boards with ties first or last beyond those that the fraction of a score can distinguish: these members tie among themselves."),
		guards:      set.Counters("guard_total", "Commands beyond a guard of their class, by limit (changes, members, gain) and action: observe (applied), refuse.", "limit", "action"),
		gains:       &gains{highest: set.Gauge("gain_highest", "Highest gain of one member on one board in the running clock hour, by increments that this writer applied; boards of classes with a guard.")},
		rates:       set.Counters("member_changes_total", "Posts with --member-changes: refused (beyond it), uncounted (Redis did not count in time, so they passed).", "result"),
		trims:       set.Counter("trims_total", "Members that were driven out of boards that keep only their best."),
		hiddenLost:  set.Counter("hidden_lost_total", "Boards whose hash of hidden members was found deleted: but for those that are hidden in all the class, they are not hidden any more."),
		otherKeys:   set.Counters("other_keys_total", "Records of durable classes whose sequence matters that have another key than it needs, by class: they are applied, in a sequence of chance.", "class"),
		unfit:       set.Gauge("durable_refused", "Durable classes whose posts are refused, as the command topic does not keep what they need."),
		fullest:     &fullest{gauge: set.Gauge("orders_fullest", "Order ids in the fullest hash that was seen in the last ten minutes: one command a second is sampled. More than 100,000: raise --order-buckets.")},
		published:   set.Counter("updates_published_total", "Updates acknowledged by Kafka."),
		topics:      set.Counter("topics_created_total", "Topics created because they were missing."),
		retries:     set.Counters("retries_total", "Attempts that failed and were repeated, by server: redis, kafka.", "of"),
		stalled:     set.Gauge("stalled_seconds", "For how long the batch in hand is applied or published; 0: there is none."),
		tooLarge:    set.Counters("too_large_total", "Records larger than their topic takes, by topic: commands are refused, updates left out, and those for the ledger tried again.", "topic"),
		logFailed:   set.Counter("log_failed_total", "Calls whose changes the log in Redis did not take: they stand, and sidecars miss them for some seconds."),
		apply:       set.Histogram("apply_seconds", "Time until Redis answered one batch, retries included.", seconds),
		publish:     set.Histogram("publish_seconds", "Time until Kafka acknowledged the updates of one batch, retries included.", seconds),
		batch:       set.Histogram("batch_commands", "Records per batch from Kafka.", prometheus.ExponentialBuckets(1, 4, 6)),
		rewind:      newRewindMetrics(set),
	}
	m.posts.WithLabelValues("503", "wrong_clock") // increase sees the first one of a series that was there only
	return m
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
	if j.rules.features().Guard && j.Op == wire.OpIncr && j.raw() > 0 {
		m.gains.note(j.Board, j.Member, j.raw(), now)
	}
	if !j.Op.Removes() && !j.Op.Moves() && j.rules.features().Ties && j.Update.Seq >= wire.TieLimit(j.Update.Score) {
		m.ties.Inc()
	}
}

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

// rewindMetrics count what a [rewinder] does. Gone, damaged and alternating are alerts.
type rewindMetrics struct {
	changes, rewinds, gone, damaged, alternating prometheus.Counter
	replaced                                     prometheus.Counter
	rewinding, damagedNow, waiting               prometheus.Gauge
	read                                         *prometheus.CounterVec // by result
	running                                      atomic.Bool            // a rewind
	again, lost                                  atomic.Int64           // in it: read again, and applied again
	limit                                        rate.Sometimes
}

func newRewindMetrics(set *metric.Set) *rewindMetrics {
	return &rewindMetrics{limit: logLimit(),
		changes:     set.Counter("era_changes_total", "Changes of the history of a master of Redis, by a failover or a restart, that this writer has seen."),
		rewinds:     set.Counter("rewinds_total", "How often commands were read again because Redis may have lost their changes."),
		rewinding:   set.Gauge("rewinding_partitions", "Partitions of the command topic of which Redis may lack changes: their commands are read again."),
		read:        set.Counters("read_again_total", "Commands of durable classes that were read again after their updates were published, by result: applied (Redis had lost them), duplicate, refused.", "result"),
		gone:        set.Counter("commands_gone_total", "Commands that Redis may lack and the command topic no longer has."),
		replaced:    set.Counter("replaced_partitions_total", "Partitions whose command topic was deleted and made again: commands of the former one that were not read are lost, the new one is read from its beginning."),
		damaged:     set.Counter("masters_damaged_total", "How often a master of Redis did not tell how far it is, or was behind by more than half an order life."),
		damagedNow:  set.Gauge("masters_damaged", "Masters of Redis that may lack boards which the ledger has: rankcache ledger rebuilds these."),
		waiting:     set.Gauge("lost_boards_waiting", "Boards for whose rebuild by the ledger commands of this writer wait."),
		alternating: set.Counter("masters_alternating_total", "Changes of the history of a master of Redis within seconds after another one."),
	}
}

// count counts a command that was read again.
func (m *rewindMetrics) count(o *Outcome) {
	m.again.Add(1)
	m.read.WithLabelValues(o.result()).Inc()
	if o.Refusal == nil && !o.Duplicate {
		m.lost.Add(1)
	}
}

// logLimit allows one log line a second of one kind; metrics count every event.
func logLimit() rate.Sometimes { return rate.Sometimes{Interval: time.Second} }
