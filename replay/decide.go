package replay

import (
	"fmt"
	"time"

	"rankcache"
)

// holeGrace is how long updates that are missing at the end of the log are waited
// for: a writer that has changed Redis and not yet produced is about to.
const holeGrace = 2 * time.Second

// observation is all that a gate knows of its board at one moment.
type observation struct {
	total Total // what Redis keeps

	// Kafka: has it answered, does the topic exist, has all been applied that
	// the log held at the start and for how long, has it lost its beginning,
	// may it have lost what later updates replace.
	kafkaKnown, topicKnown bool
	ended                  bool
	endedFor               time.Duration
	cut, compacted         bool

	// Redis: has it answered, the first total known (0: none), members.
	redisKnown bool
	want       uint64
	members    int
	// Why they have not answered.
	kafkaTrouble, redisTrouble string

	have rankcache.Progress

	// Of this epoch: a snapshot was loaded and how long ago, the total that was
	// read after it, and how a comparison with Redis found the board wrong.
	loaded    bool
	loadedFor time.Duration
	after     uint64
	differs   string
}

// action is what a gate does next.
type action uint8

const (
	actWait     action = iota
	actCompare         // with a sample of Redis, and open the board if it agrees
	actSettle          // the same for a log with holes, with a larger sample
	actSnapshot        // load the board from Redis
)

// step is an action and what to tell the operator meanwhile.
type step struct {
	act    action
	state  rankcache.BoardState
	reason string
}

func stay(state rankcache.BoardState, reason string, args ...any) step {
	return step{actWait, state, fmt.Sprintf(reason, args...)}
}

// decide returns the next step of a board that is not open. Opening takes three
// things: the log was read to the end that it had at the start, no update up to
// Redis's total is missing, and a sample agrees. A total of 0 is unknown, so it
// is never reached. What the log can't give comes from a snapshot of Redis.
func decide(o *observation) step {
	switch {
	case !o.kafkaKnown:
		return stay(rankcache.StateWaiting, "Kafka has not answered yet: %s", or(o.kafkaTrouble, "asked"))
	case !o.topicKnown:
		return stay(rankcache.StateWaiting, "its topic does not exist yet: the writer makes it with the first update")
	case !o.ended:
		return stay(rankcache.StateReplaying, "reading the log up to its end at the start")
	case !o.redisKnown:
		return stay(rankcache.StateWaiting, "Redis has not answered yet: %s", or(o.redisTrouble, "asked"))
	case o.total == TotalNone && o.members == 0:
		return stay(rankcache.StateWaiting, "Redis has no such board yet")
	case o.total != TotalNone && o.want == 0:
		return stay(rankcache.StateWaiting, "Redis has no total of the board yet")
	case o.loaded:
		return afterSnapshot(o)
	}
	return afterReplay(o)
}

// afterReplay goes on from the end of the log.
func afterReplay(o *observation) step {
	short := o.have.Applied() < o.want
	switch {
	case o.differs != "" && o.total == TotalSeq:
		return compare(o, actCompare) // waiting for the rest would not help
	case short && o.compacted && o.have.Highest >= o.want && o.endedFor >= holeGrace:
		return compare(o, actSettle)
	case !short:
		return compare(o, actCompare)
	case o.total != TotalSeq:
		return stay(rankcache.StateChecking, "the log gave %d of %d orders, and without seqs a snapshot can't be joined to it", o.have.Applied(), o.want)
	case o.cut || o.endedFor >= holeGrace:
		return step{actSnapshot, rankcache.StateSnapshot, fmt.Sprintf("the log gives updates up to %d of %d without a hole: loading from Redis", o.have.Contiguous, o.want)}
	}
	return stay(rankcache.StateChecking, "the log gives updates up to %d of %d: waiting for the rest", o.have.Contiguous, o.want)
}

// afterSnapshot waits until the log has caught up with the snapshot.
func afterSnapshot(o *observation) step {
	switch {
	case o.have.Contiguous >= o.after:
		return compare(o, actCompare)
	case o.loadedFor >= holeGrace:
		return step{actSnapshot, rankcache.StateSnapshot, fmt.Sprintf("updates between %d and %d of the snapshot are missing: loading again", o.have.Contiguous, o.after)}
	}
	return stay(rankcache.StateSnapshot, "loaded; waiting for update %d of %d", o.have.Contiguous, o.after)
}

// compare compares with Redis, unless that has shown that the board is wrong.
func compare(o *observation, act action) step {
	if o.differs == "" || o.total != TotalSeq {
		return step{act, rankcache.StateChecking, or(o.differs, "comparing with Redis")}
	}
	return step{actSnapshot, rankcache.StateSnapshot, o.differs + ": loading from Redis"}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
