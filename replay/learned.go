package replay

import "time"

// observe returns what Kafka and Redis have said of the board.
func (f *follower) observe() observation {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.reading
	o := observation{
		kafkaKnown: t != nil || f.absent, redisKnown: !f.total.asked.IsZero(),
		want: f.want, members: f.total.members,
		kafkaTrouble: f.kafkaTrouble, redisTrouble: f.redisTrouble,
	}
	if t != nil && !t.gone.Load() {
		o.topicKnown, o.ended, o.cut, o.compacted = true, t.ended(), t.cut(), t.compacted
	}
	return o
}

// learn takes a total that Redis said, which was asked for in an epoch, and says
// whether that is still the board's.
func (f *follower) learn(r reading, epoch int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.epoch != epoch {
		return false
	}
	f.total, f.redisAway, f.redisTrouble = r, false, ""
	f.refute(r)
	if f.want == 0 && r.seq != 0 {
		f.want = r.seq
		f.nudge()
	}
	return true
}

// topicAbsent notes that Kafka has no topic for the board.
func (f *follower) topicAbsent() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.absent, f.kafkaTrouble = true, ""
}

func (f *follower) kafkaFailed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kafkaTrouble = err.Error()
}

func (f *follower) redisFailed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.redisTrouble, f.redisAway = err.Error(), true
}

func (f *follower) topicNow() *topic {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reading
}

// dry says that since asked the log has nothing more to give.
func (f *follower) dry(asked time.Time) bool {
	t := f.topicNow()
	return t == nil || t.gone.Load() || t.dry(asked)
}

// currentByLog marks a board without a total by the end of its log.
func (f *follower) currentByLog() {
	t := f.topicNow()
	if t == nil || t.gone.Load() {
		return
	}
	if end := t.end.Load(); end != nil && t.dry(end.asked.Add(-1)) {
		f.show(end.asked)
	}
}
