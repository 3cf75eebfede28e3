package replay

import (
	"sync/atomic"
	"time"
)

// topic is one reading of a board's topic, from its first offset on. A topic
// that has to be read again, because it was made again or because another board
// wants it too, gets a new one.
type topic struct {
	name string
	id   string // Kafka's; another one means another topic of the same name
	// anew says that what was read of this name before is void.
	anew bool
	// parts is replaced when partitions are added.
	parts atomic.Pointer[[]*partition]
	// resumeAt is where reading should begin in each partition, because the files of
	// the boards resumeFor have what is before; nil for the beginning. resumed says
	// that it does.
	resumeAt  []int64
	resumeFor []*follower
	resumed   bool
	// compacted is whether the log may have lost updates that later ones
	// replace.
	compacted bool
	// gone says that Kafka has no such topic any more.
	gone atomic.Bool
	// torn says that offsets went back: what is read is not what was begun.
	torn atomic.Bool
	// end is the newest look at the ends of the log; nil before the first.
	end atomic.Pointer[logEnd]
}

// logEnd is where the log ended at a time, per partition.
type logEnd struct {
	asked time.Time
	high  []int64
}

// partition is one partition being read. Offsets count records of the log.
type partition struct {
	topic  *topic
	number int32
	// low and high are the first offset and the end when reading began. The gate
	// waits for high, not for the end of the moment, which runs ahead of it.
	low, high int64
	// from is where reading began: low, or later if files have the rest.
	from int64
	// next says that everything before it has been applied.
	next atomic.Int64

	reached int64 // the pump's own: as next, but not yet applied
}

// ended says that what the log held when reading began has been applied. It goes
// by position: control records and what compaction removed never arrive.
func (p *partition) ended() bool { return p.next.Load() >= p.high }

func (t *topic) partitions() []*partition { return *t.parts.Load() }

func (t *topic) ended() bool {
	for _, p := range t.partitions() {
		if !p.ended() {
			return false
		}
	}
	return true
}

// left returns how many records are left to read up to the end at the start.
func (t *topic) left() (n int64) {
	for _, p := range t.partitions() {
		n += max(0, p.high-p.next.Load())
	}
	return n
}

// size returns how many records the log had when reading began.
func (t *topic) size() (n int64) {
	for _, p := range t.partitions() {
		n += p.high - p.from
	}
	return n
}

// cut says that the log has lost its beginning, and nothing else has it.
func (t *topic) cut() bool {
	if t.resumed {
		return false
	}
	for _, p := range t.partitions() {
		if p.low > 0 {
			return true
		}
	}
	return false
}

// dry says that since asked the log has nothing that was not applied.
func (t *topic) dry(asked time.Time) bool {
	end := t.end.Load()
	if end == nil || !end.asked.After(asked) {
		return false
	}
	for i, p := range t.partitions() {
		if i >= len(end.high) || p.next.Load() < end.high[i] {
			return false
		}
	}
	return true
}
