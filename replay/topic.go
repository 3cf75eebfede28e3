package replay

import (
	"slices"
	"sync/atomic"
	"time"
)

// topic is one reading of a board's topic, from its beginning or from where files end. When a topic is read again,
// because it was recreated or because another board needs its beginning, that reading is a new value. The topic watcher
// sets the plain fields before it hands the value to the consumer; after that they are only read.
type topic struct {
	name string
	id   string // Kafka's, or streamID; another id is another topic of the same name
	// reset is set if earlier records of this name are void.
	reset bool
	// parts are one partition for boards with seqs, unless the topic is shared.
	parts []*partition
	// resumed is set if it begins where files end, and they have the records before of all its boards.
	resumed bool
	// shared tells that others have updates in it too.
	shared bool
	// gone is set by the topic watcher when Kafka no longer has the topic.
	gone atomic.Bool
	// rewound is set by the dispatcher when offsets went back, and by the gate when the
	// log has to be read again: nothing more is taken from this reading.
	rewound atomic.Bool
	// end is where the log ended at the topic watcher's last poll. It is nil if that had
	// no answer for some partition, or was not needed.
	end atomic.Pointer[logEnd]
}

// logEnd is where the log ended at a time, per partition.
type logEnd struct {
	requested time.Time
	// known is the time since which each request had an answer for each partition.
	known time.Time
	high  []int64
}

// partition is one partition being read. Offsets count records of the log.
type partition struct {
	topic  *topic
	number int32
	// low and high are the first offset and the end when reading began. The gate
	// waits for high, not for the current end, which keeps moving.
	low, high int64
	// from is where reading began: low, or later if files have the rest.
	from int64
	// next is the offset before which everything has been applied, set by the dispatcher.
	next atomic.Int64

	// passed is set once a log in Redis was read to its end: what was lost of it never arrives.
	passed atomic.Bool

	reached int64 // the dispatcher's own: as next, but not yet applied
	atEnd   bool  // the dispatcher's own: as passed, but not yet applied
}

// topicInfo is Kafka's description of a topic. It has no partitions if the topic does not exist.
type topicInfo struct {
	name       string
	id         string
	partitions int
}

// offsets is where a partition's log begins and ends for a reader of committed records.
type offsets struct{ low, high int64 }

// newTopic returns a reading whose offsets are still to be set.
func newTopic(info topicInfo, reset bool) *topic {
	t := &topic{name: info.name, id: info.id, reset: reset}
	for n := range info.partitions {
		t.parts = append(t.parts, &partition{topic: t, number: int32(n)})
	}
	return t
}

// isStream tells that offsets are places in the log in Redis: their differences are no numbers of records.
func (t *topic) isStream() bool { return t.id == streamID }

// setOffsets sets where the partition begins and ends; false if found has no answer.
func (p *partition) setOffsets(found map[*partition]offsets) bool {
	at, ok := found[p]
	p.low, p.high = at.low, at.high
	p.start(at.low)
	return ok
}

// start makes reading begin at an offset.
func (p *partition) start(from int64) {
	p.from, p.reached = from, from
	p.next.Store(from)
}

// advance counts what was reached as applied. Only the dispatcher calls it.
func (p *partition) advance() {
	p.next.Store(p.reached)
	if p.atEnd {
		p.passed.Store(true)
	}
}

// back has reading go on from an earlier offset. Only the dispatcher calls it.
func (p *partition) back(to int64) {
	p.reached = to
	p.next.Store(to)
}

// ended returns whether the records that the log held when reading began have been applied. It
// goes by position: control records and what compaction removed never arrive.
func (p *partition) ended() bool { return p.passed.Load() || p.next.Load() >= p.high }

func (t *topic) ended() bool {
	return !slices.ContainsFunc(t.parts, func(p *partition) bool { return !p.ended() })
}

// left returns how many records are left to read up to the end at the start; 0 if that is not known.
func (t *topic) left() (n int64) {
	if t.isStream() {
		return 0
	}
	for _, p := range t.parts {
		n += max(0, p.high-p.next.Load())
	}
	return n
}

// size returns how many records the log had when reading began; 0 if that is not known.
func (t *topic) size() (n int64) {
	if t.isStream() {
		return 0
	}
	for _, p := range t.parts {
		n += p.high - p.from
	}
	return n
}

// truncated returns whether the log has lost its beginning and no file has it.
func (t *topic) truncated() bool {
	return !t.resumed && slices.ContainsFunc(t.parts, func(p *partition) bool { return p.low > 0 && p.from == p.low })
}

// setEnd records where the log ended, if found has all its partitions.
func (t *topic) setEnd(requested time.Time, found map[*partition]int64) {
	end := &logEnd{requested: requested, known: requested}
	if last := t.end.Load(); last != nil {
		end.known = last.known
	}
	for _, p := range t.parts {
		high, ok := found[p]
		if !ok {
			t.end.Store(nil) // its leader is away: its end is unknown
			return
		}
		end.high = append(end.high, high)
	}
	t.end.Store(end)
}

// drained returns whether everything that was in the log at a time has been applied.
func (t *topic) drained(at time.Time) bool {
	end := t.end.Load()
	return end != nil && end.requested.After(at) && t.readTo(end)
}

// exhausted returns whether the log was complete for a time after since, each partition having a leader, and everything
// that was in it then has been applied: an update that was due at since will not come any more.
func (t *topic) exhausted(since time.Time, after time.Duration) bool {
	end := t.end.Load()
	if end == nil {
		return false
	}
	if end.known.After(since) {
		since = end.known
	}
	return end.requested.Sub(since) >= after && t.readTo(end)
}

func (t *topic) readTo(end *logEnd) bool {
	return !slices.ContainsFunc(t.parts, func(p *partition) bool { return p.next.Load() < end.high[p.number] })
}
