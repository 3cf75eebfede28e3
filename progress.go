package rankcache

import (
	"cmp"
	"math/bits"
	"time"
)

// ApplyResult counts the updates of one batch by their effect.
type ApplyResult struct {
	Applied   int  // set the member's state
	Duplicate int  // seen before: same seq, or same order id
	Stale     int  // first seen, but the member already has a higher seq
	Refuted   bool // set if the update behind contradicts a proved board. It and those behind it were not applied.
}

// Progress is how far one board has come.
type Progress struct {
	Contiguous, Highest uint64 // the seq up to which every update was seen, Highest the highest seen
	OrderIDs            uint64 // counts the distinct order ids of updates applied without a seq
	Members             int    // the number of members now on the board
}

// Applied returns the count to compare with Redis: the contiguous seq, or order ids if the producer keeps no seq.
func (p Progress) Applied() uint64 {
	if p.Highest == 0 {
		return p.OrderIDs
	}
	return p.Contiguous
}

// BoardState is where a super-hot board stands on its way to being readable.
type BoardState string

// States of a super-hot board.
const (
	StateWaiting   BoardState = "waiting"   // its topic or Redis's seq is not there yet
	StateReplaying BoardState = "replaying" // reading its topic up to the end at start
	StateChecking  BoardState = "checking"  // comparing seq and a sample of members with Redis
	StateSnapshot  BoardState = "snapshot"  // its topic is incomplete: loading from Redis
	StateStale     BoardState = "stale"     // served from a file of an earlier run, because Redis is unavailable
	StateOpen      BoardState = "open"      // served from local memory
	StateLost      BoardState = "lost"      // served from local memory as it was: Redis has lost it
	StateGivenUp   BoardState = "given-up"  // the deadline passed: served by Redis, still retried
)

// BoardStatus is the state of one super-hot board as probes and operators see it.
type BoardStatus struct {
	Board       BoardID
	State       BoardState
	Reason      string    // why it is in this state
	Since       time.Time // when it entered this state
	Have        uint64    // changes applied so far, as [Progress.Applied] counts
	Want        uint64    // changes that Redis has, 0 if unknown
	Rate        float64   // recent updates applied per second
	ETA         time.Duration
	Members     int
	LostMembers int           // how many members a life had of which Redis now has fewer than half; 0: none was lost
	Age         time.Duration // since it was last known to equal Redis; 0 if it never was
	Audit       AuditStatus
	Proof       ProofStatus
}

const troubledAge = 5 * time.Second // the age from which an open board counts as troubled

// trouble returns how much a board is in trouble, the least first.
func (s *BoardStatus) trouble() int {
	switch {
	case s.State == StateGivenUp && s.Members == 0 && s.Want == 0:
		return 1 // its room has not begun
	case s.State == StateGivenUp || s.State == StateStale || s.State == StateLost:
		return 4
	case s.State != StateOpen:
		return 3
	case s.Age >= troubledAge:
		return 2
	}
	return 0
}

// CompareStatus orders boards by what operators look for: those in trouble first, then the larger. Sizes count by
// powers of two, so that the order does not change with every update; boards that are alike compare as 0.
func CompareStatus(a, b *BoardStatus) int {
	return cmp.Or(cmp.Compare(b.trouble(), a.trouble()), cmp.Compare(bits.Len(uint(b.Members)), bits.Len(uint(a.Members))))
}

// AuditStatus has the results of comparing an open board with Redis since the board is followed.
type AuditStatus struct {
	At                    time.Time // of the last comparison, zero before the first
	Checks                uint64    // comparisons
	Unknown               uint64    // comparisons without a result: Redis or Kafka was late
	Members               uint64    // members compared
	Differences, Rebuilds uint64    // counts members that differed, Rebuilds how often the board was filled again
	Last                  string    // the last difference
	LastAt                time.Time // when it was found
}

// ProofStatus tells both sides of the comparison with Redis by their states. One without a run is unknown.
type ProofStatus struct {
	State    State     // of the copy
	Origin   State     // Redis's, when it was last read
	OriginAt time.Time // when that was
	// Proved is the latest state at which both were equal, sum included, at ProvedAt; zero before the first time.
	Proved   State
	ProvedAt time.Time
}

// Life is how far a board's life has come in Redis. It only rises. A board of which Redis has no meta is open.
type Life uint8

// Lives of a board.
const (
	LifeOpen Life = iota
	LifeClosing
	LifeClosed
	LifeFinal
)

// String returns the life as answers name it: open, closing, closed or final.
func (l Life) String() string {
	return [...]string{"open", "closing", "closed", "final"}[min(l, LifeFinal)]
}
