package replay

import (
	"iter"
	"time"

	"rankcache"
)

// Files keeps boards over a restart. Its methods may be called by several
// goroutines.
type Files interface {
	// Save replaces what was saved of a board. Entries are valid only until the
	// next piece.
	Save(Saved, iter.Seq[[]rankcache.Entry]) error
	// Load returns what was saved last. The error wraps fs.ErrNotExist if that is
	// nothing.
	Load(rankcache.BoardID) (Saved, []rankcache.Entry, error)
	// Sweep removes what was saved of other boards, unless it is younger than idle.
	Sweep(keep []rankcache.BoardID, idle time.Duration) error
}

// Saved says what the entries of a saved board belong to.
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
	// Topic and TopicID name the board's log. Reading goes on at Offsets, one per
	// partition: before them is no update later than Seq.
	Topic, TopicID string
	Offsets        []int64
}

// age returns how old the copy is by the clock of now, and false if the clock
// can't tell: it was set back, or the board was never known to equal Redis.
func (s *Saved) age(now time.Time) (time.Duration, bool) {
	if s.CurrentAt.IsZero() || s.CurrentAt.After(now) {
		return 0, false
	}
	return now.Sub(s.CurrentAt), true
}
