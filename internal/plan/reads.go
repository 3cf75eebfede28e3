package plan

// Reads is one kind of reads and what it costs. Its JSON is stable.
type Reads struct {
	Kind       string  `json:"kind"`
	PerSecond  float64 `json:"per_s"`
	FromMemory float64 `json:"from_memory"` // share
	PodMicros  float64 `json:"pod_us"`      // CPU of one from memory
	RedisCalls float64 `json:"redis_calls"` // of one that Redis answers
	RedisUs    float64 `json:"redis_us"`    // CPU of Redis for one
}

// kinds returns the reads by kind. Of hot boards pages alone are in memory.
func (q Question) kinds() []Reads {
	whole := 1 - q.Small - q.Hot
	return []Reads{
		{"pages", q.Requests * (1 - q.Own - q.Around), 1 - q.Small, readSeconds * 1e6, 1, redisSeconds * 1e6},
		{"own ranks", q.Requests * q.Own, whole, ownSeconds * 1e6, 1, redisSeconds * redisOwnShare * 1e6},
		{"neighbours", q.Requests * q.Around, whole, aroundSeconds * 1e6, 2, redisSeconds * (1 + redisOwnShare) * 1e6},
	}
}

// readSeconds returns the CPU of a sidecar for the mean read.
func (q Question) readSeconds() float64 {
	return (1-q.Own-q.Around)*readSeconds + q.Own*ownSeconds + q.Around*aroundSeconds
}

// reads sets what the reads take of Redis, without and with sidecars.
func (a *Answer) reads(q Question) {
	a.Reads = q.kinds()
	for _, k := range a.Reads {
		left := k.PerSecond * (1 - k.FromMemory)
		a.RedisBefore += k.PerSecond * k.RedisCalls
		a.RedisBeforeCPU += k.PerSecond * k.RedisUs / 1e6
		a.RedisAfter += left * k.RedisCalls
		a.RedisAfterCPU += left * k.RedisUs / 1e6
		if q.Requests > 0 {
			a.FromMemory += (k.PerSecond - left) / q.Requests
		}
	}
}
