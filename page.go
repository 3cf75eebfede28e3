package rankcache

import "time"

// Stamp says which moment of a board an answer speaks of.
type Stamp struct {
	// Seq is the board's count of applied orders, 0 when it is not known.
	Seq uint64
	// Members is the number of members of the whole board.
	Members int
	// At is when the answer was made, by the clock of this process.
	At time.Time
}

// Page is a run of neighbouring rows of a board: Start is the 0-based index of
// the first, so row i has rank Start+i+1. Entries are not changed after they
// were handed out.
type Page struct {
	Stamp
	Start   int
	Entries []Entry
}
