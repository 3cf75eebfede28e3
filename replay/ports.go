package replay

import (
	"context"
	"iter"
	"time"

	"rankcache"
	"rankcache/wire"
)

// Board is one board in local memory. Its methods may be called by several
// goroutines. The strings of updates and entries are valid only during the call.
type Board interface {
	Apply([]wire.Update) rankcache.ApplyResult
	// Load replaces the board by entries that were read from Redis after seq.
	Load(seq uint64, es []rankcache.Entry) error
	// AcceptHoles counts every seq up to seq as seen: holes below it are accepted.
	AcceptHoles(seq uint64)
	Reset()
	Progress() rankcache.Progress
	// Score includes what is not published yet. memberSeq is the highest seq
	// applied to the member; if it is not ok its removal's, or the seq up to which
	// it may have been removed.
	Score(member string) (score float64, memberSeq uint64, ok bool)
	Publish()
	// Repair gives a member the state that Redis had at seq, unless it has, or may
	// have had, a later update. It returns whether that changed anything.
	Repair(member string, score float64, there bool, seq uint64) bool
	// Page and Standings read what is published.
	Page(start, limit int, order rankcache.Direction) rankcache.Page
	Standings(dst []rankcache.Standing, members []string, order rankcache.Direction) ([]rankcache.Standing, rankcache.Stamp)
	// MarkCurrent records that the board equalled Redis at t.
	MarkCurrent(t time.Time)
	CurrentAt() time.Time
	// Snapshot returns what was last published, in pieces.
	Snapshot() (rankcache.Stamp, iter.Seq[[]rankcache.Entry])
}

// Boards is the set of local boards. Readers do not find a created board before
// Open. Its methods may be called by several goroutines.
type Boards interface {
	Create(rankcache.BoardID) Board
	// Prepare gets a board that has every update ready for its first reader, before Open.
	// It may wait, until ctx is done: no lock is held.
	Prepare(context.Context, Board)
	Open(rankcache.BoardID)
	Close(rankcache.BoardID)
	Drop(rankcache.BoardID)
}

// Origin is Redis. A total of 0 is an unknown one.
type Origin interface {
	// Totals returns the total and the size of each board. A stamp without a
	// time was not read, and the error has the reason.
	Stamps(context.Context, []rankcache.BoardID) ([]rankcache.Stamp, error)
	// Sample returns the scores of the members and of random others, the total
	// and the size, all of one instant.
	Sample(ctx context.Context, board rankcache.BoardID, members []string, random int) (Sample, error)
	// Page returns rows with the total and the size of the same instant.
	Page(ctx context.Context, board rankcache.BoardID, start, limit int, order rankcache.Direction) (rankcache.Page, error)
	// Scan gives the whole board to fn in pieces, and returns the totals read
	// before the first and after the last.
	Scan(ctx context.Context, board rankcache.BoardID, fn func([]rankcache.Entry) error) (before, after uint64, err error)
}

// Sample is what a board is compared with.
type Sample struct {
	rankcache.Stamp
	// Given has the score of each requested member that is on the board.
	Given map[string]float64
	// Random are other members; one may come twice.
	Random []rankcache.Entry
}

// Files keeps boards over a restart. Its methods may be called by several
// goroutines.
type Files interface {
	// Save replaces the board's file. Entries are valid only until the next piece.
	Save(Saved, iter.Seq[[]rankcache.Entry]) error
	// Load returns the board's file. The error wraps fs.ErrNotExist if there is
	// none.
	Load(rankcache.BoardID) (Saved, []rankcache.Entry, error)
	// Sweep removes the files of other boards, unless they are younger than idle.
	Sweep(keep []rankcache.BoardID, idle time.Duration) error
}

// Saved describes the entries of a board's file.
type Saved struct {
	Board rankcache.BoardID
	Total string
	// Seq is up to where every update is in the entries. Later ones may be, too.
	Seq     uint64
	Members int
	// TakenAt is when the entries were published.
	TakenAt time.Time
	// CurrentAt is when the board was last known to equal Redis.
	CurrentAt time.Time
	// Topic and TopicID name the board's log. Reading resumes at Offsets, one per
	// partition: before them is no update later than Seq.
	Topic, TopicID string
	Offsets        []int64
}

// age returns how old the copy is by the clock of now. It is unknown (false) if
// the clock was set back, or the board was never known to equal Redis.
func (s *Saved) age(now time.Time) (time.Duration, bool) {
	if s.CurrentAt.IsZero() || s.CurrentAt.After(now) {
		return 0, false
	}
	return now.Sub(s.CurrentAt), true
}
