package replay

import (
	"context"
	"iter"
	"time"

	"rankcache"
)

// Board is a board being filled. Its methods may be called by several goroutines.
// The strings of updates and entries are valid only during the call.
type Board interface {
	Apply([]rankcache.Update) rankcache.Applied
	// Load takes a snapshot of Redis that was read after seq.
	Load(seq uint64, es []rankcache.Entry) error
	// AcceptHoles counts every seq up to seq as seen.
	AcceptHoles(seq uint64)
	Reset()
	Progress() rankcache.Progress
	// Score includes what is not published yet. memberSeq is the highest seq
	// applied to the member; if it is not ok its removal's, or the seq up to which
	// it may have been removed.
	Score(member string) (score float64, memberSeq uint64, ok bool)
	Publish()
	// Repair gives a member the state that Redis had at seq, unless it has, or may
	// have had, an update beyond. It says whether that changed anything.
	Repair(member string, score float64, there bool, seq uint64) bool
	// Page and Standings tell what is published.
	Page(start, limit int, order rankcache.Order) rankcache.Page
	Standings(dst []rankcache.Standing, members []string, order rankcache.Order) ([]rankcache.Standing, rankcache.Stamp)
	// MarkCurrent says that the board equalled Redis at t.
	MarkCurrent(t time.Time)
	CurrentAt() time.Time
	// Image returns what was last published, in pieces.
	Snapshot() (rankcache.Stamp, iter.Seq[[]rankcache.Entry])
}

// Boards is where boards live. A created board is not readable before Open.
type Boards interface {
	Create(rankcache.BoardID) Board
	Open(rankcache.BoardID)
	Close(rankcache.BoardID)
	Drop(rankcache.BoardID)
}

// Origin is Redis. A total of 0 is an unknown one.
type Origin interface {
	// Totals returns the total and the size of each board. A stamp without a
	// time was not read, and the error says why.
	Totals(context.Context, []rankcache.BoardID) ([]rankcache.Stamp, error)
	// Sample returns the scores of the members and of random others, the total
	// and the size, all of one instant.
	Sample(ctx context.Context, board rankcache.BoardID, members []string, random int) (Sample, error)
	// Page returns rows with the total and the size of the same instant.
	Page(ctx context.Context, board rankcache.BoardID, start, limit int, order rankcache.Order) (rankcache.Page, error)
	// Scan gives the whole board to fn in pieces, and returns the totals read
	// before the first and after the last.
	Scan(ctx context.Context, board rankcache.BoardID, fn func([]rankcache.Entry) error) (before, after uint64, err error)
}

// Sample is what a board is compared with.
type Sample struct {
	rankcache.Stamp
	// Given has the score of each asked member that is on the board.
	Given map[string]float64
	// Random are other members; one may come twice.
	Random []rankcache.Entry
}
