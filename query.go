package rankcache

import (
	"context"
	"errors"
	"time"
)

var ErrNotKept = errors.New("not kept here") // reports that a copy does not have what was asked for: another source may

// Query is one question about one board: for a run of its rows, for the standing of members, or for both.
type Query struct {
	Board BoardID
	Room  string    // the live room of the caller, "" for none: it decides together with the board where that is read
	Order Direction // Descending or Ascending. A sidecar's Reader takes the others, too, and sets it to one of these.

	Start, Limit int      // the 0-based index of the first row, Limit the most rows; 0: none
	Members      []string // those whose standings are wanted
	// Scores are raw scores that the members are taken to have: an answer tells which rank each has or would have, and
	// what stands around there, the member's own row too. nil: the scores that the members have.
	Scores []float64
	Around int  // how many rows around each member are wanted: 2n+1 for n on either side; 0: none
	Gap    bool // whether [Own].Better is wanted
	// Mode is the mode of the ranks, Percentile whether percentiles are wanted: both need
	// what is ahead of the rows ([Ahead]). Ranks in answers are ordinal in any mode.
	Mode       RankMode
	Percentile bool
	// Ladder, of the board, gives the members their ranks where Redis answers, if the board is of its run. A sidecar's
	// Reader sets it for Mode [Approx], where nothing else is wanted but rows and percentiles.
	Ladder *Ladder
	// Range limits the rows to those with such scores: Start and Limit count these alone, and [Answer.Start] tells how
	// many rows of the board are before. Without a Limit that is all that is asked for. nil: all rows.
	Range   *ScoreRange
	Trimmed bool // asks for scores of members beside the sorted set, where boards keep their best alone there: no ranks
	// Form is how scores are shown: those that are shown as the same are the same score to Gap,
	// Mode and Percentile. A sidecar's Reader sets it, by the board's class.
	Form ScoreForm

	// The next fields bound how old the answer may be. If the copy is too old and stays so for Wait, Redis is asked.

	// MaxAge is how long ago the copy must have been known to be current; 0: any copy will
	// do. An answer of Redis is as old as the call took.
	MaxAge time.Duration
	MinSeq uint64 // the least seq that the answer may have, such as that of the caller's own write; 0: any
	// MinState is a state that the board must have been through, such as that of the caller's own write; a zero Run:
	// any. The answer is of its run and not before its seq, and where the board's sum at that seq is known, it is the
	// same. MinSeq can't tell that: a Redis that fails over gives seqs out again.
	MinState State
	Wait     time.Duration // how long the copy may take to become fresh enough; 0: not at all

	Primary    bool // the answer is not to be of a replica of Redis
	CopiesOnly bool // what no copy in this process has is not asked for: [ErrNotKept]
	Uncounted  bool // the read does not make the board hot
	RanksOnly  bool // a member without a rank needs no score

	Rolling bool // the board sums up several periods. A sidecar's Reader sets it, by the board's class
}

// Bounded reports whether there is a bound.
func (q *Query) Bounded() bool { return q.MinSeq != 0 || q.MaxAge != 0 || q.MinState.Run != 0 }

// ScoreRange is the scores from Least to Most, both included.
type ScoreRange struct {
	Least, Most float64
	Shown       bool // they are scores as they are shown; else raw ones
}

// RawRange returns the raw scores of Range.
func (q *Query) RawRange() (least, most float64) {
	if q.Range.Shown {
		return q.Form.Raws(q.Range.Least, q.Range.Most)
	}
	return q.Range.Least, q.Range.Most
}

// Neighbours returns how many rows on either side of a member are wanted.
func (q *Query) Neighbours() int { return (q.Around - 1) / 2 }

// Ranked reports whether it is wanted what is ahead of the rows.
func (q *Query) Ranked() bool { return q.Mode.counts() || q.Percentile }

// Plain reports whether rows and standings alone are wanted. Only then these may be of another moment.
func (q *Query) Plain() bool {
	return q.Around == 0 && !q.Gap && !q.Ranked() && q.Range == nil && !q.Trimmed && q.Scores == nil
}

// Reader answers queries: a board in memory, the pages of hot boards, Redis, a ledger, or what chooses among them.
type Reader interface {
	// Read sets the answers to the queries, in their order. Each has an error of its own. It may be called
	// concurrently, keeps neither slice nor strings of the queries, and uses the room of the answers' Own again.
	Read(ctx context.Context, qs []Query, as []Answer)
}

// One returns the answer of r to one query.
func One(ctx context.Context, r Reader, q Query) Answer {
	as := make([]Answer, 1)
	r.Read(ctx, []Query{q}, as)
	return as[0]
}
