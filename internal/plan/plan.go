// Package plan computes the cost of a fleet of sidecars and whether it pays, from the
// load and the measured figures in figures.go. The entry function is [Make].
//
// Words: a question is the fleet and its load; an answer is what it costs; the verdict is
// whether sidecars pay; a figure is a measurement of docs/BENCHMARKS.md.
package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"rankcache/wire"
)

// Question describes a fleet and its load.
type Question struct {
	Members     []int         // of each super-hot board
	Lingering   []int         // members of each of those whose period has ended
	IDBytes     int           // length of a member's id
	Updates     float64       // a second, of all super-hot boards together
	History     time.Duration // length of the log that a starting sidecar replays
	Requests    float64       // reads a second of the whole fleet
	Small       float64       // share of the reads, 0 to 1, that are of small boards: Redis answers
	Hot         float64       // share of the reads that are of hot boards: Redis answers all but pages
	Own, Around float64       // shares of the reads that are own ranks, and neighbours; the others are pages
	HotBoards   int           // boards that are hot at the same time
	Refresh     time.Duration // interval of reading a hot page from Redis
	Pods        int           // 0: as many as the reads need
	ProfileMiB  int           // budget of the profile cache
	PollEvery   time.Duration // interval of calls to the cloud's API; 0: no cloud
	UpdateBytes int           // of one update as JSON; 0: as the writer encodes it
	Streams     int           // live streams of one pod
	HTTP2       int           // of them over HTTP/2, as those of gRPC
	StreamRate  float64       // events a second of one stream
	LedgerRows  float64       // changes a second that the ledger keeps; 0: no ledger
	LedgerKeep  time.Duration // how long; 0: for ever
	// Rolling is how many updates a second change boards that a rolling class sums up, Primes the members of such a
	// class's boards in a PrimePeriod, PrimeRate how many the controller sends in a second.
	Rolling     float64
	Primes      int
	PrimePeriod time.Duration
	PrimeRate   int
	// PodsPerNode is how many pods share a sidecar; 0: each has its own. Keepers is how many run, 0: none.
	PodsPerNode, Keepers int
	StatesEvery          time.Duration // of the keepers
	AuditRows            int           // that sidecars, or the keeper, compare with Redis in a second
	SnapshotEvery        time.Duration // 0: sidecars that start have no snapshots
	Topics               int           // of the updates; 0: one for each board
	LogInRedis           bool          // the updates are in the log in Redis; there is no Kafka
}

// Answer is the cost of the fleet. Its JSON is stable.
type Answer struct {
	Pods            int     `json:"pods"`
	Sidecars        int     `json:"sidecars"`          // "pod_…" is of one
	PodsComputed    bool    `json:"pods_computed"`     // from the reads, none were given
	PodHeapMiB      float64 `json:"pod_heap_mib"`      // live: boards, profiles, counters
	PodMemoryMiB    float64 `json:"pod_memory_mib"`    // the lowest limit with which all boards are admitted
	PodCPU          float64 `json:"pod_cpu_cores"`     // reads and updates
	PodReads        float64 `json:"pod_reads_per_s"`   // answered by one pod
	FromMemory      float64 `json:"from_memory"`       // share of the reads
	Reads           []Reads `json:"reads"`             // by kind
	PodUpdates      float64 `json:"pod_updates_per_s"` // applied by each pod
	OpenSeconds     float64 `json:"open_s"`            // from start to the last board open
	LogUpdates      float64 `json:"log_updates"`       // replayed by a pod that starts
	LogMiB          float64 `json:"log_mib"`           // read by a pod that starts, uncompressed
	UpdateBytes     int     `json:"update_bytes"`      // on the wire, uncompressed
	KafkaEgressMB   float64 `json:"kafka_egress_mb_per_s"`
	KafkaIngressMB  float64 `json:"kafka_ingress_mb_per_s"`
	RolloutMB       float64 `json:"rollout_mb"` // read from Kafka when every pod starts once
	RedisBefore     float64 `json:"redis_calls_per_s_without"`
	RedisAfter      float64 `json:"redis_calls_per_s_with"`
	RedisBeforeCPU  float64 `json:"redis_cores_without"`
	RedisAfterCPU   float64 `json:"redis_cores_with"`
	WriterCPU       float64 `json:"writer_cores"`
	APICallsPerHour float64 `json:"api_calls_per_h"`
	LiveEvents      float64 `json:"pod_live_events_per_s"`
	LiveCPU         float64 `json:"pod_live_cores"`        // of pod_cpu_cores
	LiveMiB         float64 `json:"pod_live_mib"`          // of the streams, in both figures of memory
	LedgerDayMiB    float64 `json:"ledger_mib_per_day"`    // of the database, without its own log and free pages
	LedgerMiB       float64 `json:"ledger_mib"`            // with the retention; 0: grows for ever, or no ledger
	RollingChanges  float64 `json:"rolling_changes_per_s"` // of Redis, beside the updates: two for each, and the primes
	PrimesPerSecond float64 `json:"primes_per_s"`          // mean over a period
	PrimeSeconds    float64 `json:"prime_s"`               // how long those of a period take

	// Of the whole fleet, while nobody asks; redis_calls_per_s_with and redis_cores_with have it, too.
	RestTrips    float64 `json:"rest_redis_trips_per_s"`
	RestCommands float64 `json:"rest_redis_commands_per_s"`
	RestCPU      float64 `json:"rest_redis_cores"`
	RestRedisMB  float64 `json:"rest_redis_mb_per_s"`
	// Of that, one sidecar.
	PodRestCommands float64 `json:"pod_rest_redis_commands_per_s"`
	PodRestRedis    float64 `json:"pod_rest_redis_cores"`
	PodFetchKB      float64 `json:"pod_kafka_fetch_kb_per_s"`
	PodRestCPU      float64 `json:"pod_rest_cores"`
	PodRestMiB      float64 `json:"pod_rest_mib"` // private, without a limit: with one the collector uses what that leaves

	LogCPU    float64 `json:"redis_log_cores"` // of Redis, by the log in it; redis_cores_with has it, too
	OrdersMiB float64 `json:"order_ids_mib"`   // of Redis, at most: those of writers

	Fetches      float64 `json:"pod_fetches_per_s"`        // of Kafka
	KafkaFetchMB float64 `json:"kafka_fetch_mb_per_s"`     // requests and answers, beside the updates, of the whole fleet
	SnapshotMiB  float64 `json:"snapshot_mib"`             // that a sidecar that starts reads from the bucket
	SnapshotsMB  float64 `json:"snapshots_saved_mb_per_s"` // by the keeper, where all boards change

	Verdict string   `json:"verdict"` // worth it, doubtful or not needed
	Reasons []string `json:"reasons"`
}

const MaxPodCPU = 0.5 // the load, in cores, of a sidecar for which pods are computed: the rest of a core is for peaks

const mib = 1 << 20

// Make returns the cost for a question that [Question.Check] accepts.
func Make(q Question) Answer {
	a := Answer{UpdateBytes: q.updateBytes(), PodsComputed: q.Pods == 0}
	perSidecar := max(q.PodsPerNode, 1)
	if a.PodsComputed {
		q.Pods = q.podsNeeded() * perSidecar
	}
	a.Pods, a.Sidecars = q.Pods, (q.Pods+perSidecar-1)/perSidecar
	members, lingering := 0, 0
	for _, n := range q.Members {
		members += n
	}
	for _, n := range q.Lingering {
		lingering += n
	}
	sidecars := float64(a.Sidecars)
	heap := float64(members+lingering)*float64(memberBytes+q.IDBytes) + counterBytes + float64(q.ProfileMiB)*mib + q.inStreams()
	a.PodHeapMiB, a.PodMemoryMiB = heap/mib, q.lowestLimit()/mib
	a.PodReads, a.PodUpdates = q.Requests/sidecars, q.Updates
	a.LiveEvents = float64(q.Streams) * q.StreamRate
	a.LiveCPU, a.LiveMiB = a.LiveEvents*eventSeconds, q.inStreams()/mib
	a.PodCPU = a.PodReads*q.readSeconds() + q.besideReads()
	a.LedgerDayMiB = q.LedgerRows * 86400 * rowBytes / mib
	a.LedgerMiB = a.LedgerDayMiB * q.LedgerKeep.Hours() / 24
	a.starts(q, float64(members), float64(a.UpdateBytes))
	a.KafkaIngressMB = q.Updates * float64(a.UpdateBytes) / 1e6
	a.KafkaEgressMB = a.KafkaIngressMB * (sidecars + float64(q.Keepers))
	if q.Primes > 0 {
		a.PrimesPerSecond, a.PrimeSeconds = float64(q.Primes)/q.PrimePeriod.Seconds(), float64(q.Primes)/float64(q.PrimeRate)
	}
	a.RollingChanges = 2*q.Rolling + a.PrimesPerSecond
	a.atRest(q)
	a.OrdersMiB = q.Updates * orderLives.Seconds() * orderBytes / mib
	a.redis(q)
	if q.LogInRedis {
		a.noKafka(q)
	}
	a.WriterCPU = (q.Updates + a.RollingChanges) * commandWriterSeconds
	if q.PollEvery > 0 {
		a.APICallsPerHour = float64(time.Hour / q.PollEvery)
	}
	a.judge(q)
	return a
}

// noKafka takes out what a fleet without Kafka does not have, and sets what the log in Redis takes of it.
func (a *Answer) noKafka(q Question) {
	a.KafkaIngressMB, a.KafkaEgressMB, a.RolloutMB, a.LogMiB, a.LogUpdates = 0, 0, 0, 0, 0
	a.OpenSeconds = openSeconds // and the rows are loaded from Redis
	for _, n := range q.Members {
		a.OpenSeconds += float64(n) * ScanSeconds
	}
	reads := q.logReads() * float64(a.Sidecars+q.Keepers)
	a.LogCPU = reads*(logReadSeconds+WakeSeconds(a.RedisAfter)) + q.Updates*logAddSeconds
}

// lowestLimit returns the bytes with which serve admits all boards, filled one by one when memory is short.
func (q Question) lowestLimit() float64 {
	need, fill := 0.0, 0.0
	for _, n := range slices.Concat(q.Members, q.Lingering) {
		need += boardBytes + float64(n*(reservedBytes+q.IDBytes))
		fill = max(fill, boardFillBytes+float64(n*(memberFillBytes+q.IDBytes)))
	}
	need += fill
	inGo := need/heapShare + ownHeapBytes + float64(q.ProfileMiB)*mib + q.inStreams()
	return max(need/askedShare, (inGo+outsideBytes)/(1-kernelShare))
}

func (q Question) inStreams() float64 {
	return float64(q.Streams-q.HTTP2)*streamBytes + float64(q.HTTP2)*http2StreamBytes
}

// podsNeeded returns how many pods keep each sidecar at or below MaxPodCPU.
func (q Question) podsNeeded() int {
	reads := q.Requests * q.readSeconds()
	return max(int(math.Ceil(reads/(MaxPodCPU-q.besideReads()))), 1)
}

// besideReads returns the cores that each sidecar takes for updates and live streams.
func (q Question) besideReads() float64 {
	return q.Updates*updateSeconds + float64(q.Streams)*q.StreamRate*eventSeconds
}

// redis sets the load of Redis without and with sidecars. Hot pages due together take one round trip.
func (a *Answer) redis(q Question) {
	pages := 0.0
	if q.HotBoards > 0 {
		pages = float64(a.Sidecars) * float64(q.HotBoards) / q.Refresh.Seconds()
	}
	changes := q.Updates + a.RollingChanges
	a.reads(q)
	a.RedisBefore += changes
	a.RedisAfter += pages + a.RestTrips + changes
	a.wakes(q, a.RedisAfter)
	a.RedisBeforeCPU += changes * bareRedisSeconds
	a.RedisAfterCPU += pages*redisSeconds + a.RestCPU + changes*CommandRedisSeconds
	if q.LogInRedis {
		a.RedisAfterCPU += changes * logAddSeconds
	}
}

// updateBytes returns the bytes of one record: value, key and Kafka's overhead.
func (q Question) updateBytes() int {
	member := strings.Repeat("9", max(q.IDBytes, 1))
	value := q.UpdateBytes
	if value == 0 {
		value = len(wire.AppendUpdate(nil, &wire.Update{Board: "1_2_3", Member: member, Op: wire.OpIncr, Delta: 10,
			Score: 974000, Run: 1838429319476737, Seq: 1e6, HasSum: true, Members: 57000, OrderID: "gift-1000000000", At: 1700000000123}))
	}
	return value + len(member) + recordBytes
}

// Check returns the first error in the question, "" without one.
func (q Question) Check() string {
	switch {
	case q.Pods < 0:
		return "pods: want 1 or more"
	case q.PodsPerNode < 0 || q.Keepers < 0 || q.AuditRows < 0 || q.SnapshotEvery < 0 || q.Topics < 0:
		return "pods-per-node, keepers, audit-rows, snapshot-every, topics: want 0 or more"
	case q.Keepers > 0 && q.StatesEvery <= 0:
		return "states-every: want more than 0"
	case !(q.Small >= 0 && q.Hot >= 0 && q.Small+q.Hot <= 1):
		return "small, hot-reads: want shares from 0 to 1, of 1 together at most"
	case !(q.Own >= 0 && q.Around >= 0 && q.Own+q.Around <= 1):
		return "own, around: want shares from 0 to 1, of 1 together at most"
	case !(q.Updates >= 0 && q.Requests >= 0) || math.IsInf(q.Updates+q.Requests, 0):
		return "updates, requests: want 0 or more a second"
	case q.Streams < 0 || !(q.StreamRate >= 0 && q.LedgerRows >= 0) || math.IsInf(q.StreamRate+q.LedgerRows, 0) || q.LedgerKeep < 0:
		return "streams, stream-events, ledger-rows, ledger-keep: want 0 or more"
	case !(q.Rolling >= 0 && q.Rolling <= q.Updates):
		return "rolling-updates: want 0 to --updates"
	case q.Primes < 0 || q.Primes > 0 && (q.PrimePeriod < time.Second || q.PrimeRate < 1):
		return "primes, prime-rate: want members of 0 or more, a period of a second or more and a rate of 1 or more"
	case q.Primes > 0 && float64(q.Primes) > float64(q.PrimeRate)*q.PrimePeriod.Seconds():
		return fmt.Sprintf("primes: %d members in %v are %.0f a second, more than --prime-rate %d: the boards would stay incomplete", q.Primes, q.PrimePeriod, float64(q.Primes)/q.PrimePeriod.Seconds(), q.PrimeRate)
	case q.HTTP2 < 0 || q.HTTP2 > q.Streams:
		return "streams-http2: want 0 to --streams"
	case q.HotBoards < 0 || q.IDBytes < 1 || q.ProfileMiB < 0 || q.UpdateBytes < 0 || q.History < 0 || q.PollEvery < 0:
		return "want no negative numbers, and member ids of 1 byte or more"
	case q.Pods == 0 && q.besideReads() >= MaxPodCPU:
		return fmt.Sprintf("updates: these and the live streams take %.2f cores of each sidecar, so the pods can't be computed: set --pods", q.besideReads())
	case q.HotBoards > 0 && q.Refresh <= 0:
		return "hot-refresh: want more than 0"
	}
	for _, n := range slices.Concat(q.Members, q.Lingering) {
		if n < 0 {
			return "members, lingering: want 0 or more"
		}
	}
	return ""
}

// Values of Answer.Verdict.
const (
	WorthIt   = "worth it"
	Doubtful  = "doubtful"
	NotNeeded = "not needed"
)

const (
	idleRedis = 0.1 // the load of Redis, in cores, below which sidecars are not needed
	minGain   = 0.5 // the share of Redis's work that sidecars should save at least
	// mostRest and mostFetchMB are the cores of Redis, and the MB/s of Kafka, that a fleet may take for itself.
	mostRest, mostFetchMB = 0.5, 100
	mostLog               = 0.25          // cores of Redis from which on the log in it is dearer than a Kafka
	orderLives            = 2 * time.Hour // for how long an order id is kept at most, by default
)

// judge sets the verdict and its reasons.
func (a *Answer) judge(q Question) {
	doubt := func(format string, args ...any) { a.Reasons = append(a.Reasons, fmt.Sprintf(format, args...)) }
	if share := q.Requests / redisPerSecond; share < idleRedis {
		a.Verdict = NotNeeded
		doubt("these reads keep one Redis core %.1f %% busy: a plain ZREVRANGE is simpler and always right", share*100)
		return
	}
	if len(q.Members) > 0 && q.Updates > a.PodReads {
		doubt("each pod would apply %.0f updates/s to answer %.0f reads/s: the hot tier, which refreshes a page, is cheaper than replaying the board", q.Updates, a.PodReads)
	}
	if saved := 1 - a.RedisAfterCPU/a.RedisBeforeCPU; saved < minGain {
		doubt("sidecars save only %.0f %% of Redis's work: most reads are of small boards, or most of the work is updates, which cost Redis %.0f us each, a plain ZINCRBY %.1f", max(saved, 0)*100, CommandRedisSeconds*1e6, bareRedisSeconds*1e6)
	}
	if a.FromMemory < minGain {
		doubt("%.0f %% of the reads are answered from memory: of small boards Redis answers, and of hot ones all but pages: name boards super-hot (--members)", a.FromMemory*100)
	}
	if total := a.PodMemoryMiB * float64(a.Sidecars); a.PodMemoryMiB > 2048 {
		doubt("%.0f MiB in every pod, %.0f MiB in total: make fewer boards super-hot", a.PodMemoryMiB, total)
	}
	if a.WriterCPU > 1 {
		doubt("these updates keep %.1f cores of writers busy: run several; Redis spends %.1f cores on them", a.WriterCPU, (q.Updates+a.RollingChanges)*CommandRedisSeconds)
	}
	kept := math.Floor(mostRest * float64(a.Sidecars) / max(a.RestCPU, 1e-9)) // sidecars that need no keeper
	if a.RestCPU > mostRest {
		doubt("the sidecars keep %.1f cores of Redis busy while nobody asks: run keepers (--keepers), which more than %.0f sidecars need, or one sidecar a node (--pods-per-node)", a.RestCPU, kept)
	}
	if a.KafkaFetchMB > mostFetchMB {
		doubt("fetches of %d sidecars take %.0f MB/s of Kafka beside the updates, because each names all topics: have boards share the topics of classes (--topics), or run one sidecar a node (--pods-per-node)", a.Sidecars, a.KafkaFetchMB)
	}
	if a.LogCPU > mostLog {
		doubt("the log takes %.1f cores of Redis: from some %.0f sidecars on Kafka is cheaper", a.LogCPU, math.Floor(mostLog/a.LogCPU*float64(a.Sidecars)))
	}
	a.Verdict = WorthIt
	if len(a.Reasons) > 0 {
		a.Verdict = Doubtful
		return
	}
	doubt("Redis goes from %.0f to %.0f calls/s", a.RedisBefore, a.RedisAfter)
	if q.Keepers == 0 && a.RestCPU > 0 {
		doubt("more than %.0f sidecars need a keeper (--keepers)", kept)
	}
}
