package plan

// What the log in Redis costs it, beside what topics cost Kafka.
const (
	// speed/FLEET.md, "The log in Redis": a change is added to it, and each sidecar reads it after changes, at most so
	// often a second.
	logAddSeconds, logReadSeconds = 3.5e-6, 20e-6
	logReadsPerSecond             = 80
	// mostLog are the cores of Redis from which on reading it is dearer than a Kafka.
	mostLog = 0.25
	// speed/WRITER.md: an order id is kept for one to two order lives, of an hour by default.
	orderBytes, orderSeconds = 108, 2 * 3600
)

// logReads returns how often a second a sidecar reads the log in Redis.
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

// noKafka takes out what a fleet without Kafka does not have, and sets what reading the log in Redis takes of it.
func (a *Answer) noKafka(q Question) {
	a.KafkaIngressMB, a.KafkaEgressMB, a.KafkaFetchMB, a.PodFetchKB, a.Fetches, a.RolloutMB, a.LogMiB, a.LogUpdates = 0, 0, 0, 0, 0, 0, 0, 0
	a.OpenSeconds = openSeconds // and the rows are loaded from Redis
	for _, n := range q.Members {
		a.OpenSeconds += float64(n) * ScanSeconds
	}
	reads := q.logReads() * float64(a.Sidecars+q.Keepers)
	a.LogCPU = reads*(logReadSeconds+WakeSeconds(a.RedisAfter)) + q.Updates*logAddSeconds
}
