package sidecar

import (
	"errors"
	"fmt"

	"rankcache"
)

// Sentinels of a [Reader], beside [rankcache.ErrUnavailable], [rankcache.ErrBoard],
// [rankcache.ErrMember] and [rankcache.ErrRankMode].
var (
	ErrBlocked = errors.New("board is blocked") // reports that the operator switched the board or its room off
	// ErrOverloaded reports that too many reads wait for Redis already.
	ErrOverloaded = errors.New("too many reads wait for the origin")
	// ErrGone reports a board whose period ended longer ago than its class keeps boards, and which has no final.
	ErrGone  = errors.New("period is not kept any more")
	ErrRange = errors.New("rows out of range") // reports a start or a number of rows outside what one answer holds
)

// Limits of one answer.
const (
	MaxAround = 100 // the most neighbours on either side of a member
	MaxBatch  = 10  // how many boards one request may read
)

var errNotWhole = fmt.Errorf("%w: dense ranks need the whole board in memory, and this one is not held here or not open", rankcache.ErrRankMode)

// check returns an error for more than one answer holds.
func check(q *rankcache.Query) error {
	switch n := len(q.Members); {
	case q.Around != 0 && (q.Neighbours() < 0 || q.Neighbours() > MaxAround):
		return fmt.Errorf("%w: %d neighbours, want 0 to %d", ErrRange, q.Neighbours(), MaxAround)
	case n > rankcache.MaxTop || n == 0 && q.Limit == 0 && q.Range == nil:
		return fmt.Errorf("%w: %d members, want 1 to %d", ErrRange, n, rankcache.MaxTop)
	case q.Scores != nil && len(q.Scores) != n:
		return fmt.Errorf("%w: %d scores of %d members", ErrRange, len(q.Scores), n)
	case q.Start < 0 || q.Start > rankcache.MaxStart || q.Limit < 0 || q.Limit > rankcache.MaxTop && !q.CopiesOnly:
		return fmt.Errorf("%w: %d rows from %d, want 1 to %d from 0 to %d", ErrRange, q.Limit, q.Start, rankcache.MaxTop, rankcache.MaxStart)
	}
	return nil
}

// checkIDs returns an error for what can't be a key or an argument of Redis.
func checkIDs(q *rankcache.Query) error {
	for _, m := range q.Members {
		if err := rankcache.CheckMember(m); err != nil {
			return err
		}
	}
	return q.Board.Check()
}

// Tier is where one board is read.
type Tier uint8

// The tiers, in the order in which they are preferred after TierBlocked.
const (
	TierBlocked Tier = iota // refused
	TierLocal               // the whole board in memory
	TierHot                 // the refreshed top page in memory, the rest in Redis
	TierRedis               // Redis
)

// String returns the tier as it is shown to operators.
func (t Tier) String() string { return [...]string{"blocked", "super-hot", "hot", "small"}[t] }
