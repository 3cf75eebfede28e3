package replay

import (
	"sync"
	"sync/atomic"
	"time"

	"rankcache"
)

// reading is a total read from Redis, of a moment after requested.
type reading struct {
	rankcache.State
	members   int
	life      rankcache.Life
	adopting  bool      // a writer adds it up
	requested time.Time // zero before the first
	current   time.Time // of which time the answer is: requested, unless Redis is a replica ([sources.current])
}

func readingOf(s *rankcache.Stamp, requested, current time.Time) reading {
	return reading{s.State, s.Members, s.Life, s.Adopting, requested, current}
}

// sources has the latest answers of Kafka and Redis about one board. The topic watcher and the totals poller report
// here directly; what belongs to an epoch (log, latest, target) is written by the replica alone, with its lock held, so
// that it never changes within an epoch of another one. mu is a leaf: nothing is called with it held.
type sources struct {
	mu      sync.Mutex
	log     *topic // the topic as it is being read, nil before Kafka has shown it
	joined  bool   // it was being read before it was read for this board
	refused string // why the topic is not read though Kafka has answered: there is none, or it has several partitions
	latest  reading
	target  uint64          // the first total of this epoch, which the replay has to reach
	equal   rankcache.State // the latest state of Redis that the board was proved to have had
	equalAt time.Time
	// Why Kafka or Redis did not answer the last time, empty if it did.
	kafkaErr, redisErr string
	readingLasts       time.Duration    // for how long a reading tells where Redis is. It is set at the start.
	logIn              string           // where the log is, for operators. It is set at the start.
	alone              bool             // Redis is the only source: no log is read. It is set at the start.
	reached            func() time.Time // [Config].Reached. It is set at the start.
}

// isReplica returns whether Redis is a replica in another region than the writers'.
func (s *sources) isReplica() bool { return s.reached != nil }

// current returns of which time it is what Redis answers to a request from now on: zero if that is unknown.
func (s *sources) current() time.Time {
	if s.reached == nil {
		return time.Now()
	}
	return s.reached()
}

const clockSkew = 5 * time.Second // by how much the regions' clocks may differ before lag is taken for a loss

// surelyOf returns of which time a reading is by this machine's clock, or later: zero if that is unknown.
func (s *sources) surelyOf(t *reading) time.Time {
	if !s.isReplica() {
		return t.requested
	}
	if t.current.IsZero() {
		return t.current
	}
	return t.current.Add(-clockSkew)
}

// begin sets the log that is read from now on; joined tells that it is being read already.
func (s *sources) begin(t *topic, joined bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, s.joined, s.refused = t, joined, ""
}

// learn takes a total and returns whether it is the first of the epoch.
func (s *sources) learn(r reading) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.latest.Run != 0 || s.target != 0
	s.latest, s.redisErr = r, ""
	if first = !known && (r.Seq != 0 || r.Run != 0); first {
		s.target = r.Seq
	}
	return first
}

func (s *sources) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest, s.target, s.equal, s.equalAt = reading{}, 0, rankcache.State{}, time.Time{}
}

const unfinished = 1 // names no run to be added up anew: the writers are asked to end what one has begun

// wrongRun returns the run that is to be added up anew. One that a writer is adding up is right once that has ended:
// named here, it would be added up again, as another run, which has each sidecar load the board again and ask again.
func (s *sources) wrongRun() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest.adopting {
		return unfinished
	}
	return s.latest.Run
}

// proved records that the board was equal to a state of Redis.
func (s *sources) proved(origin rankcache.State, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.equal, s.equalAt = origin, at
}

// proof returns the latest state of Redis that the board was proved to have had, and when.
func (s *sources) proof() (rankcache.State, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.equal, s.equalAt
}

// topicRefused records why the topic is not read, and returns whether that is new.
func (s *sources) topicRefused(why string) (isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isNew = s.refused != why
	s.refused, s.kafkaErr = why, ""
	return isNew
}

func (s *sources) kafkaFailed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kafkaErr = err.Error()
}

func (s *sources) redisFailed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redisErr = err.Error()
}

// redisAway returns whether Redis did not answer the last time.
func (s *sources) redisAway() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.redisErr != ""
}

// totals returns the latest total and the one to reach.
func (s *sources) totals() (latest reading, target uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest, s.target
}

// summed returns whether Redis has a checksum of a run of the board.
func (s *sources) summed(run uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest.Run == run && s.latest.HasSum
}

// redisKnown returns whether the latest total tells where Redis is now.
func (s *sources) redisKnown(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.redisErr == "" && now.Sub(s.latest.requested) <= s.readingLasts
}

func (s *sources) topic() *topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log
}

// drained returns whether everything that was in the log at a time has been applied.
func (s *sources) drained(at time.Time) bool {
	t := s.topic()
	return t == nil || t.gone.Load() || t.drained(at)
}

// exhausted returns whether an update that Redis had at since, and that is not here, will not come any more: for a time
// after since, or after Kafka had trouble last, each partition had a leader, and was then read to its end. A partition
// that can't be read, or is paused, may still bring it.
func (s *sources) exhausted(since time.Time, after time.Duration) bool {
	t := s.topic()
	return t == nil || t.gone.Load() || t.exhausted(since, after)
}

// readToEnd returns a time at which the log held nothing that was not applied since.
func (s *sources) readToEnd() (at time.Time, ok bool) {
	t := s.topic()
	if t == nil || t.gone.Load() {
		return at, false
	}
	end := t.end.Load()
	if end == nil || !t.drained(end.requested.Add(-1)) {
		return at, false
	}
	return end.requested, true
}

// fileState is the file that a board was filled from. It is written with the replica's lock held.
type fileState struct {
	entries atomic.Pointer[Saved] // that the board's entries come from; nil: they come from elsewhere, or are void
	resume  atomic.Pointer[Saved] // whose offsets the log is resumed at; nil: there is none
}

func (f *fileState) set(s *Saved) {
	f.entries.Store(s)
	f.resume.Store(s)
}

// isOfAnother returns whether the entries come from another topic than t.
func (f *fileState) isOfAnother(t *topic) bool {
	s := f.entries.Load()
	return s != nil && s.TopicID != t.id
}

// isOf returns whether the board has the records of a topic before a place there.
func (f *fileState) isOf(t *topic) bool {
	s := f.resume.Load()
	return s != nil && s.TopicID == t.id
}

// isYounger returns whether there are entries that are known to be no older than maxAge.
func (f *fileState) isYounger(now time.Time, maxAge time.Duration) bool {
	s := f.entries.Load()
	if s == nil {
		return false
	}
	age, ok := s.age(now)
	return ok && age <= maxAge
}

// disprovedBy returns a fault if a total shows the entries void: a total is lower or gone only after a loss.
func (f *fileState) disprovedBy(t reading) *fault {
	s := f.entries.Load()
	switch {
	case s == nil || t.requested.IsZero() || t.Run == s.Run && t.Seq >= s.Seq:
		return nil
	case t.Seq == 0:
		return new(faultGone("total"))
	case t.Run != s.Run:
		return new(faultRun(t.Run, s.Run))
	}
	return new(faultAhead(t.Seq, s.Seq))
}
