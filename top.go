package rankcache

import (
	"sync/atomic"
	"time"
)

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

// Direction says which end of a board is its best.
type Direction uint8

// Descending is ZREVRANGE's order (score, then member bytes, both falling);
// Ascending is ZRANGE's.
const (
	Descending Direction = iota
	Ascending
)

// String returns the direction as callers write it: "desc" or "asc".
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
	// Seq is the board's count of applied orders, 0 when it is not known.
	Seq uint64
	// Members is the number of members of the whole board.
	Members int
	// PublishedAt is when this head was made, by the clock of this process.
	PublishedAt time.Time

	// Memo keeps what the read path derives from the fields above (encoded
	// pages), so that it lives exactly as long as they do. It is a cache, not
	// part of the value; one package stores into it, always the same type.
	Memo atomic.Value

	// Handover is what readers of one top leave to those of the board's next one,
	// whose rows are nearly the same; nil: nothing can be left. All tops of a
	// board share it. As Memo, it is stored into by one package, always the same type.
	Handover *atomic.Value
}
