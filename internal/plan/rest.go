package plan

import "math"

// rest is what one process does a second while nobody asks and nothing changes.
type rest struct {
	trips, commands float64 // of Redis
	cpu             float64 // of Redis, in cores, beside what it takes to wake up for each round trip
	bytes           float64 // from Redis
}

const (
	StretchRows      = 256  // of one request of the walk
	ShortestWalk     = 0.05 // seconds between two requests
	boardsAnInterval = 1000 // for how many boards a keeper's interval is what it is set to
	selfCheck        = 300  // how often a sidecar reads each board itself though a keeper does, in seconds
)

// walk returns the requests and rows a second by which all boards are compared with Redis.
func (q Question) walk() (requests, rows float64) {
	seconds, stretches, members := 0.0, 0.0, 0.0
	for _, n := range q.Members {
		of := max(math.Ceil(float64(n)/StretchRows), 1)
		stretches, members = stretches+of, members+float64(n)
		seconds += max(of*ShortestWalk, float64(n)/float64(q.AuditRows))
	}
	if seconds == 0 || q.AuditRows == 0 {
		return 0, 0
	}
	return stretches / seconds, members / seconds
}

// looks returns what it takes to read the states of all boards n times a second, and to walk through their rows.
func (q Question) looks(n float64) rest {
	requests, rows := q.walk()
	boards := float64(len(q.Members))
	return rest{trips: n + requests, commands: n*boards*3 + requests*5, cpu: n*boards*StateSeconds + rows*RowSeconds}
}

// interval is how often a keeper publishes, in seconds.
func (q Question) interval() float64 {
	return q.StatesEvery.Seconds() * float64(1+len(q.Members)/boardsAnInterval)
}

// sidecar is one sidecar at rest: rooms and the fleet's verdict besides.
func (q Question) sidecar() rest {
	if q.Keepers == 0 {
		r := q.looks(1)
		r.trips, r.commands = r.trips+3, r.commands+3 // and a ping
		return r
	}
	boards := float64(len(q.Members))
	value := 29 + 31*boards
	r := rest{trips: 1/q.interval() + 2, commands: 1/q.interval() + 2 + 3*boards/selfCheck,
		cpu: boards/100*ValueSeconds/q.interval() + boards/selfCheck*StateSeconds, bytes: value / q.interval()}
	if q.reports() {
		r.commands, r.cpu = r.commands+2, r.cpu+ReportSeconds // in the round trip of the verdict
	}
	return r
}

// reports returns whether sidecars report boards to the keeper: those asked for that they have no copy of.
func (q Question) reports() bool { return q.HotBoards > 0 || q.Requests*q.Small > 0 }

// keeper is the keeper that works; the others only try for its lease.
func (q Question) keeper(sidecars float64) rest {
	if q.Keepers == 0 {
		return rest{}
	}
	r := q.looks(1 / q.interval())
	r.trips += 1/q.interval() + 8 // publish; lease, rooms, ping, reports, verdict
	r.commands += 3/q.interval() + 12
	if q.reports() {
		r.cpu += sidecars * ReadReportSeconds
	}
	return r
}

// logReads returns how often a second a process reads the log in Redis: after changes.
func (q Question) logReads() float64 {
	if !q.LogInRedis {
		return 0
	}
	return max(1, min(q.Updates, logReadsPerSecond))
}

// readsLog adds reading the log in Redis to what a process does.
func (r *rest) readsLog(q Question) {
	reads := q.logReads()
	r.trips, r.commands, r.cpu = r.trips+reads, r.commands+reads, r.cpu+reads*logReadSeconds
}

// atRest sets what the fleet does while nobody asks.
func (a *Answer) atRest(q Question) {
	sidecars := float64(a.Sidecars)
	one, keeper := q.sidecar(), q.keeper(sidecars)
	if one.readsLog(q); q.Keepers > 0 {
		keeper.readsLog(q)
	}
	a.RestTrips, a.RestCommands = sidecars*one.trips+keeper.trips, sidecars*one.commands+keeper.commands
	a.RestRedisMB = (sidecars*one.bytes + keeper.bytes) / 1e6
	a.RestCPU = sidecars*one.cpu + keeper.cpu
	a.PodRestCommands, a.PodRestRedis = one.commands, one.cpu
	topics := float64(q.Topics)
	switch {
	case q.LogInRedis:
		topics = 0
	case q.Topics == 0:
		topics = float64(len(q.Members))
	}
	if topics > 0 {
		a.Fetches = max(1/fetchWait, min(q.Updates*fetchesAnUpdate, fetchesPerSecond))
	}
	a.PodFetchKB = topics * (a.Fetches*FetchTopicBytes + lookUpTopicBytes) / 1e3 // looked up once a second
	a.PodRestCPU, a.PodRestMiB = restCores+topics*restTopicCores, restMiB+topics*restTopicMiB+2*a.PodHeapMiB
	a.KafkaFetchMB = (sidecars + float64(q.Keepers)) * a.PodFetchKB / 1e3
}

// wakes adds what Redis takes to wake up for the round trips at rest, where that many come in a second.
func (a *Answer) wakes(q Question, perSecond float64) {
	a.RestCPU += a.RestTrips * WakeSeconds(perSecond)
	a.PodRestRedis += (q.sidecar().trips + q.logReads()) * WakeSeconds(perSecond)
}

// WakeSeconds returns what Redis takes for a round trip beside its command: it sleeps between those far apart.
func WakeSeconds(perSecond float64) float64 {
	apart, power := 1000/max(perSecond, 1), 0.3 // ms
	if apart > 1 {
		power = 0.5
	}
	return min(max(tripSeconds*math.Pow(apart, power), busyTripSeconds), rareTripSeconds)
}

func (a *Answer) starts(q Question, members float64, updateBytes float64) {
	sidecars := float64(a.Sidecars)
	a.LogUpdates = max(q.Updates*q.History.Seconds(), members)
	if q.SnapshotEvery > 0 {
		a.LogUpdates = q.Updates * q.SnapshotEvery.Seconds()
		a.SnapshotMiB = members * (snapshotBytes + float64(q.IDBytes)) / mib
		a.SnapshotsMB = a.SnapshotMiB * mib / 1e6 / q.SnapshotEvery.Seconds()
		if q.Updates == 0 {
			a.SnapshotsMB /= 10 // boards that do not change are saved once in five minutes
		}
	}
	a.OpenSeconds = openSeconds + a.LogUpdates/ReplayPerSecond
	a.LogMiB = a.LogUpdates * updateBytes / mib
	a.RolloutMB = a.LogUpdates * updateBytes * sidecars / 1e6
}
