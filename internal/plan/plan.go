// Package plan says what a fleet of sidecars will cost and whether it is worth
// it: arithmetic over the measured figures in figures.go, and nothing else.
package plan

import (
	"math"
	"strings"
	"time"

	"rankcache/wire"
)

// Question is a fleet and its load.
type Question struct {
	Members     []int         // of each super-hot board
	IDBytes     int           // length of a member's id
	Updates     float64       // a second, of all super-hot boards together
	History     time.Duration // how long updates have been coming when a sidecar starts
	Requests    float64       // reads a second of the whole fleet
	Small       float64       // share of them that no local copy answers, 0 to 1
	HotBoards   int           // boards that are hot at a time
	Refresh     time.Duration // how often a hot page is read
	Pods        int
	ProfileMiB  int           // the profile cache's budget
	PollEvery   time.Duration // pause between two calls of the cloud's API; 0: no cloud
	UpdateBytes int           // of one update as JSON; 0: as the writer writes it
}

// Answer is what the fleet will cost. Its JSON is stable.
type Answer struct {
	PodHeapMiB      float64 `json:"pod_heap_mib"`      // live: boards, profiles, counters
	PodMemoryMiB    float64 `json:"pod_memory_mib"`    // with garbage and what Go does not count: the least limit
	PodCPU          float64 `json:"pod_cpu_cores"`     // reads and updates
	PodReads        float64 `json:"pod_reads_per_s"`   // answered by one pod
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

	Verdict string   `json:"verdict"` // worth it, doubtful or not needed
	Reasons []string `json:"reasons"`
}

const mib = 1 << 20

// Make answers the question, which is taken to be sensible.
func Make(q Question) Answer {
	a := Answer{UpdateBytes: q.updateBytes()}
	members := 0
	for _, n := range q.Members {
		members += n
	}
	pods := float64(q.Pods)
	heap := float64(members)*float64(memberBytes+q.IDBytes) + counterBytes + float64(q.ProfileMiB)*mib
	a.PodHeapMiB, a.PodMemoryMiB = heap/mib, (heap*heapFactor+idleBytes)/mib
	a.PodReads, a.PodUpdates = q.Requests/pods, q.Updates
	a.PodCPU = a.PodReads*readSeconds + q.Updates*updateSeconds
	a.LogUpdates = max(q.Updates*q.History.Seconds(), float64(members))
	a.OpenSeconds = openSeconds + a.LogUpdates/replayPerSecond
	wire := float64(a.UpdateBytes)
	a.LogMiB = a.LogUpdates * wire / mib
	a.KafkaIngressMB = q.Updates * wire / 1e6
	a.KafkaEgressMB = a.KafkaIngressMB * pods
	a.RolloutMB = a.LogUpdates * wire * pods / 1e6
	a.redis(q)
	a.WriterCPU = q.Updates * commandWriterSeconds
	if q.PollEvery > 0 {
		a.APICallsPerHour = float64(time.Hour / q.PollEvery)
	}
	a.judge(q)
	return a
}

// redis fills in what Redis has to do without sidecars and with them. Pages of
// hot boards that are due together are read in one round trip.
func (a *Answer) redis(q Question) {
	pods, small := float64(q.Pods), q.Requests*q.Small
	pages := 0.0
	if q.HotBoards > 0 {
		pages = pods * float64(q.HotBoards) / q.Refresh.Seconds()
	}
	commands := q.Updates * commandRedisSeconds
	a.RedisBefore = q.Requests + q.Updates
	a.RedisAfter = small + pages + pods*ownCalls + q.Updates
	a.RedisBeforeCPU = q.Requests*redisSeconds + commands
	a.RedisAfterCPU = (small+pages+pods*ownCalls)*redisSeconds + commands
}

// updateBytes is one record on the wire: value, key and what Kafka adds.
func (q Question) updateBytes() int {
	member := strings.Repeat("9", max(q.IDBytes, 1))
	value := q.UpdateBytes
	if value == 0 {
		value = len(wire.AppendUpdate(nil, &wire.Update{Board: "1_2_3", Member: member, Op: wire.OpIncr, Delta: 10,
			Score: 974000, Seq: 1e6, OrderID: "gift-1000000000", At: 1700000000123}))
	}
	return value + len(member) + recordBytes
}

// Check returns what is wrong with the question, "" if nothing.
func (q Question) Check() string {
	switch {
	case q.Pods < 1:
		return "pods: want 1 or more"
	case q.Small < 0 || q.Small > 1 || math.IsNaN(q.Small):
		return "small: want a share from 0 to 1"
	case !(q.Updates >= 0 && q.Requests >= 0) || math.IsInf(q.Updates+q.Requests, 0):
		return "updates, requests: want 0 or more a second"
	case q.HotBoards < 0 || q.IDBytes < 1 || q.ProfileMiB < 0 || q.UpdateBytes < 0 || q.History < 0 || q.PollEvery < 0:
		return "want no negative numbers, and member ids of 1 byte or more"
	case q.HotBoards > 0 && q.Refresh <= 0:
		return "hot-refresh: want more than 0"
	}
	for _, n := range q.Members {
		if n < 0 {
			return "members: want 0 or more"
		}
	}
	return ""
}
