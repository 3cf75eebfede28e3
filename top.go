package rankcache

import "time"

// MaxTop is the most entries that a [Top] or one answered page holds.
const MaxTop = 500

// Entry is one row of a board.
type Entry struct {
	Member string
	Score  float64
}

// Standing is one member's place: Rank is 1-based, best first in the order that
// was asked for. A Rank of 0 says that the member is not on the board.
type Standing struct {
	Member string
	Score  float64
	Rank   int
}

// Order is the direction of a board.
type Order uint8

// Desc is ZREVRANGE's order (score, then member bytes, both falling); Asc is
// ZRANGE's.
const (
	Desc Order = iota
	Asc
)

// String returns the order as callers write it: "desc" or "asc".
func (o Order) String() string {
	if o == Asc {
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
	// Seq is the board's count of applied orders, 0 when it is not known.
	Seq uint64
	// Members is the number of members of the whole board.
	Members int
	// PublishedAt is when this head was made, by the clock of this process.
	PublishedAt time.Time
}
