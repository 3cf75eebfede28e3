package writer

import (
	"maps"
	"slices"
	"time"

	"rankcache"
	"rankcache/internal/kafka"
)

// job is a command and its outcome.
type job struct {
	*Command
	Outcome
	rules   rules    // of the board's class
	outside *Refusal // if it is not a repeat, as it arrived outside of its period
	// clockLimit is how far the writer's clock and Redis's may differ for that to be so.
	clockLimit time.Duration
	round      *round // of its batch; nil: it was posted
	told       bool   // what came of it is published already
	era        string // of the one server that may have answered; "" if there are several
	past       bool   // a repeat of another run than the board has there
	origin     string // as its order's record has it; "" if its record is not known
	first      bool   // a repeat only of what came of its own record
	place      string // of its record, as apply.lua takes it; "" if it was posted, or the topic's id is not known
	done       bool   // Redis replied with an update or a refusal
	waits      bool   // in this attempt: for the ledger to rebuild its board
	need       need
	waited     bool // for an adoption
}

// toPost returns the outcome as a post is told it: a repeat of what came of its own record is none.
func (j *job) toPost() Outcome {
	o := j.Outcome
	o.Duplicate = o.Duplicate && !j.first
	return o
}

func anyNeed(jobs []*job) bool {
	return slices.ContainsFunc(jobs, func(j *job) bool { return !j.done })
}

// anyToSend leaves out those whose boards wait for the ledger.
func anyToSend(jobs []*job) bool {
	return slices.ContainsFunc(jobs, func(j *job) bool { return !j.done && !j.waits })
}

// maxBatch is the most records of a batch, which costs one round trip to Redis and is repeated after a crash.
const maxBatch = 1000

// maxKept is the most records that wait for the ledger in memory, about 10 MB. With as many nothing more is read.
const maxKept = 20_000

// batch is a sequence of records of the command topic.
type batch struct {
	round   *round
	topic   string           // its id; "" if it is not known
	records []*kafka.Message // those that were kept of the batch before come first
	polled  time.Time        // the first one
	ends    offsets
	left    offsets             // the first of each partition that were left out, and are to be read again
	kept    []*kafka.Message    // those that are not done, as boards wait for the ledger
	sent    map[sentUpdate]bool // what came of those already, here or in earlier batches
}

// sentUpdate is an update of a board by a record that is kept.
type sentUpdate struct {
	record *kafka.Message
	board  rankcache.BoardID
}

func (b *batch) leave(m *kafka.Message) {
	if _, ok := b.left[m.TopicPartition.Partition]; !ok {
		b.left[m.TopicPartition.Partition] = m.TopicPartition.Offset
	}
}

// keep keeps a record for the next batch, if one of its jobs waits: all of it comes again, and what is applied now is
// then a repeat, which is not published once more. It is not committed, nor told by a position.
func (b *batch) keep(m *kafka.Message, jobs ...*job) (kept bool) {
	if kept = slices.ContainsFunc(jobs, func(j *job) bool { return j.waits }); !kept {
		return false
	}
	b.kept = append(b.kept, m)
	for _, j := range jobs {
		one := sentUpdate{m, j.Board}
		if j.told = j.told || b.sent[one]; !j.waits {
			b.sent[one] = true
		}
	}
	return true
}

// cap has the batch end before the first record of each partition that is kept.
func (b *batch) cap() {
	for _, m := range b.kept {
		if at := m.TopicPartition; b.ends[at.Partition] > at.Offset {
			b.ends[at.Partition] = at.Offset
		}
	}
}

// committable returns the batch's ends that are not committed, or not yet noted to have positions beside them.
func (b *batch) committable() offsets {
	late := make(offsets, len(b.ends))
	for p, end := range b.ends {
		if s := b.round.seeks[p]; int64(end) > s.Published || int64(end) == s.Published && !s.Noted {
			late[p] = end
		}
	}
	return late
}

type offsets map[int32]kafka.Offset // holds the next offset to process of each partition

// add records that everything before the ends is processed.
func (o offsets) add(ends offsets) { maps.Copy(o, ends) }

// keep adds the offsets of other partitions than there are.
func (o offsets) keep(others offsets) {
	for p, at := range others {
		if _, ok := o[p]; !ok {
			o[p] = at
		}
	}
}

// atMost lowers the offsets that are behind others.
func (o offsets) atMost(others offsets) offsets {
	for p, at := range others {
		if end, ok := o[p]; ok {
			o[p] = min(end, at)
		}
	}
	return o
}
