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
	id   string // Kafka's; another id is another topic of the same name
	// reset is set if earlier records of this name are void.
	reset bool
	// parts are one partition for boards with seqs, unless the topic is shared.
	parts []*partition
	// readFor are the boards that it was begun for. resumeAt is where its partitions may begin,
	// because files have the records before of all of them but lacking; nil for the beginning. resumed is
	// set if they do, and no board is lacking.
	readFor, lacking []*feed
	resumeAt         []int64
	resumed          bool
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

	reached int64 // the dispatcher's own: as next, but not yet applied
}

// topicInfo is Kafka's description of a topic. It has no partitions if the topic does not exist.
type topicInfo struct {
	name       string
	id         string
	partitions int
}

// offsets is where a partition's log begins and ends for a reader of committed records.
type offsets struct{ low, high int64 }

// newReading returns a reading of a topic for boards, whose offsets are still to be set.
func newReading(info topicInfo, reset bool, boards []*feed) *topic {
	t := newTopic(info, reset)
	t.readFor, t.lacking, t.shared = boards, boards, boards[0].log.Shared
	return t
}

// newTopic returns a reading whose offsets are still to be set.
func newTopic(info topicInfo, reset bool) *topic {
	t := &topic{name: info.name, id: info.id, reset: reset}
	for n := range info.partitions {
		t.parts = append(t.parts, &partition{topic: t, number: int32(n)})
	}
	return t
}

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

// ended returns whether the records that the log held when reading began have been applied. It
// goes by position: control records and what compaction removed never arrive.
func (p *partition) ended() bool { return p.next.Load() >= p.high }

func (t *topic) ended() bool {
	return !slices.ContainsFunc(t.parts, func(p *partition) bool { return !p.ended() })
}

// left returns how many records are left to read up to the end at the start.
func (t *topic) left() (n int64) {
	for _, p := range t.parts {
		n += max(0, p.high-p.next.Load())
	}
	return n
}

// size returns how many records the log had when reading began.
func (t *topic) size() (n int64) {
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

// since returns a time before the first update of each board that no file has the beginning of: zero if reading begins
// with the log, or where files end. Only a shared topic is not read from its beginning: it has other boards' updates
// there.
func (t *topic) since() (since time.Time) {
	for _, f := range t.lacking {
		if first := f.log.First; t.shared && (since.IsZero() || first.Before(since)) {
			since = first
		}
	}
	return since
}

// resumeFrom has reading resume where the boards' files end, at the lowest place of each partition. A board without a
// file of the topic then has it begin at its own first update, if that is earlier; where it shares no topic, that is
// the beginning. The offsets of a file count although Redis has proved its entries void: what Redis has lost is before
// them in the log, and must not be read again.
func (t *topic) resumeFrom(boards []*feed) {
	var at []int64
	var lacking []*feed
	for _, f := range boards {
		s := f.file.resumePoint()
		if s == nil || s.TopicID != t.id || len(s.Offsets) != len(t.parts) {
			lacking = append(lacking, f)
			continue
		}
		if at == nil {
			at = slices.Clone(s.Offsets)
		}
		for i := range at {
			at[i] = min(at[i], s.Offsets[i])
		}
	}
	reads := func(f *feed) bool { return !t.shared || f.log.First.IsZero() } // from the log's beginning
	if at != nil && !slices.ContainsFunc(lacking, reads) {
		t.resumeAt, t.lacking = at, lacking
	}
}

// resume makes reading begin at resumeAt. It returns false if the log was truncated after that, or ends before: then it
// is read from its beginning, and the gate sees what is missing.
func (t *topic) resume() bool {
	for i, p := range t.parts {
		if at := t.resumeAt[i]; at < p.low || at > p.high {
			t.resumeAt, t.lacking = nil, t.readFor
			return false
		}
	}
	for i, p := range t.parts {
		p.start(t.resumeAt[i])
	}
	t.resumed = len(t.lacking) == 0
	return true
}

// join has boards begin with what comes next in a shared topic that is being read. If they
// were changed before, the topic has lost their beginning as far as they can tell.
func (t *topic) join(boards []*feed) {
	for _, f := range boards {
		if t.lacks(f) {
			f.replica.join(t)
			f.whole = t
		}
	}
}

// lacks returns whether a board has missed something of the reading.
func (t *topic) lacks(f *feed) bool { return f.whole != t }
