package rankcache

import "time"

// Applied counts what became of the updates given to a board.
type Applied struct {
	Applied   int // changed the board's state, or set it to what it was
	Duplicate int // seen before (same seq, or same order number)
	Stale     int // first seen, but its member already has a higher seq
}

// Progress is how far one board has come.
type Progress struct {
	// Contiguous is the seq up to which every update has been seen; Highest is
	// the highest seen. They differ while holes are open.
	Contiguous, Highest uint64
	// Orders counts the distinct orders applied without a seq.
	Orders uint64
	// Members is the number of members now on the board.
	Members int
}

// Total returns the number that is compared with Redis: the contiguous seq, or
// the orders of a board whose producer keeps no seq.
func (p Progress) Total() uint64 {
	if p.Highest == 0 {
		return p.Orders
	}
	return p.Contiguous
}

// BoardState is where a super-hot board stands on its way to being readable.
type BoardState string

// States of a super-hot board.
const (
	StateWaiting   BoardState = "waiting"   // its topic or Redis's total is not there yet
	StateReplaying BoardState = "replaying" // reading the log up to its end at start
	StateChecking  BoardState = "checking"  // totals and a sample are compared with Redis
	StateSnapshot  BoardState = "snapshot"  // the log can't give it: loading from Redis
	StateStale     BoardState = "stale"     // answered from an earlier run's file, because Redis can't answer
	StateOpen      BoardState = "open"      // answered from local memory
	StateGivenUp   BoardState = "given-up"  // the deadline passed: answered by Redis, still tried
)

// BoardStatus is one super-hot board as probes and operators see it.
type BoardStatus struct {
	Board   BoardID
	State   BoardState
	Reason  string    // why it is in this state
	Since   time.Time // when it came into this state
	Have    uint64    // updates counted so far
	Want    uint64    // updates to reach, 0 when not known
	Rate    float64   // updates applied per second, lately
	ETA     time.Duration
	Members int
	Audit   AuditStatus
}

// AuditStatus is what the comparisons of an open board with Redis have found
// since it is followed.
type AuditStatus struct {
	At      time.Time // of the last comparison, zero before the first
	Checks  uint64    // comparisons
	Unknown uint64    // comparisons that could not be made: Redis or Kafka was late
	Members uint64    // members compared
	// Differences counts what was wrong, Repairs the members that were given
	// Redis's state, Rebuilds how often the whole board was filled again.
	Differences, Repairs, Rebuilds uint64
	Last                           string    // the last difference
	LastAt                         time.Time // when it was found
}
