package sidecar

import (
	"errors"
	"strings"
	"time"

	"rankcache"
)

// Sentinels of a [Reader], beside [rankcache.ErrUnknownMember],
// [rankcache.ErrUnavailable], [rankcache.ErrBoard] and [rankcache.ErrMember].
var (
	// ErrBlocked reports that the operator switched the board or its room off.
	ErrBlocked = errors.New("board is blocked")
	// ErrOverloaded reports that too many reads wait for Redis already.
	ErrOverloaded = errors.New("too many reads wait for the origin")
	// ErrRange reports a start or a number of rows outside what one answer holds.
	ErrRange = errors.New("rows out of range")
)

// Limits of one answer.
const (
	// MaxAround is the most neighbours on either side of a member.
	MaxAround = 100
	// MaxStart is the deepest first row, 0-based.
	MaxStart = 100_000_000
)

// Query names the board and how it is read.
type Query struct {
	Board rankcache.BoardID
	// Room is the live room of the caller, "" for none: it decides the tier together
	// with the board.
	Room  string
	Order rankcache.Direction

	// The next fields bound how old the answer may be. If the copy is too old and stays
	// so for Wait, Redis answers.

	// MaxAge is how long ago the copy must have been known to be current; 0: any
	// copy will do. An answer of Redis is as old as the call took.
	MaxAge time.Duration
	// MinSeq is the least seq that the answer may have, such as that of the
	// caller's own write; 0: any. If Redis has not reached it either, the error is
	// [ErrNotReached].
	MinSeq uint64
	// MinState is a state that the board must have been through, such as that of the
	// caller's own write; a zero Run: any. The answer is of its run and not before its
	// seq, and where the board's sum at that seq is known, it is the same. Otherwise the
	// error is [ErrWriteLost]. MinSeq can't tell that: a Redis that fails over gives
	// seqs out again.
	MinState rankcache.State
	// Wait is how long the copy may take to become fresh enough, at most
	// [MaxWait]; 0: not at all.
	Wait time.Duration
}

// Bounded reports whether q limits how old its answer may be.
func (q *Query) Bounded() bool { return q.MinSeq != 0 || q.MaxAge != 0 || q.MinState.Run != 0 }

// fresh reports whether a copy at seq, which was known to be current at the given time, is
// within the bounds of q but MinState.
func (q *Query) fresh(seq uint64, currentAt time.Time) bool {
	return seq >= q.MinSeq && (q.MaxAge == 0 || time.Since(currentAt) <= q.MaxAge)
}

// check returns an error for what can't be a key or an argument of Redis.
func (q *Query) check(members []string) error {
	for _, m := range members {
		if err := rankcache.CheckMember(m); err != nil {
			return err
		}
	}
	return q.Board.Check()
}

// own returns q with strings that may outlive the request.
func (q Query) own() Query {
	q.Board, q.Room = rankcache.BoardID(strings.Clone(string(q.Board))), ""
	return q
}

// Answer is a run of rows. Its entries are shared and must not be changed.
type Answer struct {
	rankcache.Page
	Source Source
	// Form is how the scores are shown: those of entries are raw.
	Form rankcache.ScoreForm
	// CurrentAt is when the copy was last known to equal Redis.
	CurrentAt time.Time

	at    place          // where the rows were read, for [Reader.Me]
	top   *rankcache.Top // that the rows were cut from; nil: they were not
	pages *Pages         // of rows of one call to Redis, which callers share
}

// Standings is the rank and score of some members, all of one moment.
type Standings struct {
	rankcache.Stamp
	Source    Source
	Form      rankcache.ScoreForm // as in [Answer]
	CurrentAt time.Time           // as in [Answer]
	Rows      []rankcache.Standing
	// Ahead is what is ahead of the rows, if it was asked for.
	Ahead []rankcache.Ahead

	top *rankcache.Top // head of the local board that answered; nil: another source did
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
func (t Tier) String() string {
	return [...]string{"blocked", "super-hot", "hot", "small"}[t]
}

// Source is the tier that answered a read.
type Source uint8

// The sources of an answer.
const (
	SourceLocal  Source = iota // whole local copy
	SourceHot                  // refreshed local top page
	SourceRedis                // Redis
	SourceLedger               // the ledger, while Redis is away
)

// Sources is how many there are.
const Sources = SourceLedger + 1

// String returns the source as answers name it: local, hot, redis or ledger.
func (s Source) String() string { return [...]string{"local", "hot", "redis", "ledger"}[s] }

// Kept reports whether the source is a copy in this process.
func (s Source) Kept() bool { return s < SourceRedis }
