package replay

import (
	"cmp"
	"fmt"
	"time"

	"rankcache"
)

// gateInput is all that a gate knows of its board at one moment.
type gateInput struct {
	total TotalSource

	// The log:
	logIn      string        // where it is
	kafkaKnown bool          // it has answered
	topicKnown bool          // the topic exists
	ended      bool          // all that the log held at the start has been applied
	endedFor   time.Duration // since when
	truncated  bool          // the log has lost its beginning
	kafkaErr   string        // why it has not answered
	refused    string        // why the topic is not read though it has

	// Redis:
	redisKnown bool   // it has answered
	target     uint64 // the first total known; 0: none
	run        uint64 // of the board; 0: none
	summed     bool   // its board has a checksum, which is right as far as is known
	sumWrong   bool   // its checksum is known to be wrong
	alone      bool   // no log is read
	members    int
	redisErr   string // why it has not answered

	have rankcache.Progress

	// Of this epoch:
	loaded    bool          // the board was loaded from Redis
	loadedFor time.Duration // since when
	after     uint64        // the total that was read after that load
	differs   string        // how a comparison found the board wrong
}

type action uint8 // the next step of a gate

const (
	actWait      action = iota
	actReadopt          // ask the writers to add up the board
	actProve            // compare checksums with Redis, and open the board if they are equal
	actCompare          // with a sample of Redis, and open the board if it agrees
	actLoad             // load the board from Redis
	actOpenEmpty        // open the board if neither Redis nor the log has anything of it
)

// step is an action, and the state that operators see meanwhile.
type step struct {
	act    action
	state  rankcache.BoardState
	reason string
}

func stay(state rankcache.BoardState, reason string, args ...any) step {
	return step{actWait, state, fmt.Sprintf(reason, args...)}
}

// observe takes what the sources have now.
func (in *gateInput) observe(s *sources) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in.kafkaKnown, in.redisKnown = s.log != nil || s.refused != "", !s.latest.requested.IsZero()
	in.target, in.members, in.run, in.summed = s.target, s.latest.members, s.latest.Run, s.latest.HasSum
	in.logIn, in.kafkaErr, in.redisErr, in.refused = s.logIn, s.kafkaErr, s.redisErr, s.refused
	if in.alone = s.alone; s.alone { // as if a log had lost all that it had
		in.kafkaKnown, in.topicKnown, in.ended, in.truncated = true, true, true, true
	} else if t := s.log; t != nil && !t.gone.Load() {
		in.topicKnown, in.ended, in.truncated = true, t.ended(), s.joined || t.truncated()
	}
}

// decide returns the next step of a board that is not open. It opens once its log was read to the end of the start and
// its members give Redis's checksum, or, where that is wrong, a sample agrees. What the log lacks is loaded.
func decide(in *gateInput) step {
	switch {
	case !in.kafkaKnown:
		return stay(rankcache.StateWaiting, "%s has not answered yet: %s", in.logIn, cmp.Or(in.kafkaErr, "request sent"))
	case !in.topicKnown:
		return stay(rankcache.StateWaiting, "%s", cmp.Or(in.refused, "its topic is gone"))
	case !in.ended:
		return stay(rankcache.StateReplaying, "reading the log up to its end at the start")
	case !in.redisKnown:
		return stay(rankcache.StateWaiting, "Redis has not answered yet: %s", cmp.Or(in.redisErr, "request sent"))
	case in.total != TotalSeq:
		return decideForeign(in)
	case in.alone && in.run == 0:
		return stay(rankcache.StateGivenUp, "its period is over and Redis, which answers, has no total of it")
	case in.unborn():
		return step{actOpenEmpty, rankcache.StateChecking, "neither Redis nor the log has anything of the board"}
	case in.run == 0:
		return stay(rankcache.StateWaiting, "Redis has no total of the board yet")
	case !in.summed && !in.sumWrong:
		return step{actReadopt, rankcache.StateChecking, "Redis has no checksum of the board: a writer has to add it up"}
	case in.loaded:
		return afterLoad(in)
	}
	return afterReplay(in)
}

// unborn returns whether the board had no change yet. One that had is left to Redis until it begins anew.
func (in *gateInput) unborn() bool {
	return in.run == 0 && in.members == 0 && in.have.Highest == 0 && in.differs == ""
}

// afterReplay is the step of a board whose log was read to its end.
func afterReplay(in *gateInput) step {
	short := in.have.Applied() < in.target
	switch {
	case in.target == 0 && in.have.Members == 0 && in.members > 0 && in.differs == "":
		return step{actLoad, rankcache.StateSnapshot, fmt.Sprintf("Redis has %d members from before the first update: loading them", in.members)}
	case in.summed && in.differs == "" && !(short && in.truncated):
		return proveStep(in)
	case in.differs != "":
		return compareStep(in) // waiting for the rest would not help
	case !short:
		return compareStep(in)
	case in.truncated || in.endedFor >= holeGrace:
		return step{actLoad, rankcache.StateSnapshot, fmt.Sprintf("the log gives updates up to %d of %d without a hole: loading from Redis", in.have.Contiguous, in.target)}
	}
	return stay(rankcache.StateChecking, "the log gives updates up to %d of %d: waiting for the rest", in.have.Contiguous, in.target)
}

// afterLoad is the step of a board that was loaded from Redis: it waits until the log has caught up with the load.
func afterLoad(in *gateInput) step {
	switch {
	case in.summed && in.differs == "":
		return proveStep(in)
	case in.have.Contiguous >= in.after:
		return compareStep(in)
	case in.loadedFor >= holeGrace:
		return step{actLoad, rankcache.StateSnapshot, fmt.Sprintf("updates between %d and %d of the load are missing: loading again", in.have.Contiguous, in.after)}
	}
	return stay(rankcache.StateSnapshot, "loaded; waiting for update %d of %d", in.have.Contiguous, in.after)
}

// What is different for boards without seqs, of other programs: when they open, and how they are compared.

// decideForeign opens a board without seqs once no update up to Redis's total is missing and a sample agrees.
func decideForeign(in *gateInput) step {
	switch have := in.have.Applied(); {
	case in.total == TotalNone && in.members == 0:
		return stay(rankcache.StateWaiting, "Redis has no such board yet")
	case in.total == TotalOrders && in.target == 0:
		return stay(rankcache.StateWaiting, "Redis has no total of the board yet")
	case have < in.target:
		return stay(rankcache.StateChecking, "the log gave %d of %d orders, and without seqs a load from Redis can't be joined to it", have, in.target)
	}
	return step{actCompare, rankcache.StateChecking, cmp.Or(in.differs, "comparing with Redis")}
}

func proveStep(in *gateInput) step {
	return step{actProve, rankcache.StateChecking, fmt.Sprintf("comparing checksums with Redis, at update %d of %d", in.have.Contiguous, in.target)}
}

// compareStep returns a comparison, unless one has shown that the board is wrong.
func compareStep(in *gateInput) step {
	if in.differs == "" {
		return step{actCompare, rankcache.StateChecking, "comparing with Redis"}
	}
	return step{actLoad, rankcache.StateSnapshot, in.differs + ": loading from Redis"}
}
