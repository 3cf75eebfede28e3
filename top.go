package rankcache

import "time"

// MaxTop is the most entries that a [Top] or one answered page holds.
const MaxTop = 500

// Entry is one row of a board. Its score is the raw one, which a [ScoreForm] shows.
type Entry struct {
	Member string
	Score  float64
}

// Standing is one member's rank and raw score. Rank is 1-based, best first in the
// requested direction; 0 means that the member is not on the board, or that it is Trimmed.
type Standing struct {
	Member string
	Score  float64
	Rank   int
	// Trimmed tells that the member has a score but no rank: it is beyond the first n that
	// its board keeps in the sorted set.
	Trimmed bool
}

// Found reports whether the member has a score.
func (s *Standing) Found() bool { return s.Rank > 0 || s.Trimmed }

// Direction decides which end of a board comes first.
type Direction uint8

// Descending sorts as ZREVRANGE does: by score, then by the member's bytes, both
// falling. Ascending sorts as ZRANGE does.
const (
	Descending Direction = iota
	Ascending
)

// String returns the direction as it is written in requests: "desc" or "asc".
func (d Direction) String() string {
	if d == Ascending {
		return "asc"
	}
	return "desc"
}

// Top is the head of one board at one seq, best first. It is never changed
// after it is published: its pointer is its version, and any number of
// goroutines may read it.
type Top struct {
	Board   BoardID
	Entries []Entry
	// State has the board's seq; run and sum if they are known.
	State
	// Members is the number of members of the whole board.
	Members int
	// Life tells, once it is closed, that no command changes the board any more; only
	// answers of Redis tell it.
	Life Life
	// PublishedAt is when this top was made, by the clock of this process.
	PublishedAt time.Time
}

// Stamp tells which state of a board an answer shows.
type Stamp struct {
	// State has the board's seq; run and sum if they are known.
	State
	// Members is the number of members of the whole board.
	Members int
	// Life tells, once it is closed, that no command changes the board any more; only
	// answers of Redis tell it.
	Life Life
	// At is when the answer was made, by the clock of this process.
	At time.Time
}

// Page is a run of neighbouring rows of a board. Start is the 0-based index of
// the first, so row i has rank Start+i+1. Entries are read-only.
type Page struct {
	Stamp
	Start   int
	Entries []Entry
}
