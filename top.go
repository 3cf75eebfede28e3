package rankcache

import (
	"sort"
	"time"
)

// MaxTop is the most entries that a [Top] or one answered page holds.
const MaxTop = 500

// MaxStart is the deepest first row of a page, 0-based.
const MaxStart = 100_000_000

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

// Descending sorts as ZREVRANGE does: by raw score, then by the member's bytes, both
// falling, so that the best comes first. Ascending sorts as ZRANGE does. The others name which
// shown score comes first: [ScoreForm.Direction] tells which of the former that is.
const (
	Descending Direction = iota
	Ascending
	HighestFirst
	LowestFirst
)

// String returns the direction as it is written in requests: "desc" or "asc".
func (d Direction) String() string {
	if d == Ascending || d == LowestFirst {
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
	// Life tells, once it is closed, that no command changes the board any more.
	Life Life
	// Primed tells that a board which sums up several periods has what the earlier ones give it.
	Primed bool
	// PublishedAt is when this top was made, by the clock of this process.
	PublishedAt time.Time
	// Data is what members have beside their scores; nil: nothing.
	Data *Data

	kept Kept
}

// TopOf returns the first rows of a board as they were answered.
func TopOf(board BoardID, a *Answer) *Top {
	return &Top{Board: board, Entries: a.Entries, State: a.State, Members: a.Members, Life: a.Life, Primed: a.Primed, PublishedAt: a.At, Data: a.Data}
}

// Covers reports whether a head of so many rows, of a board of so many members, has all the
// rows that q wants.
func (q *Query) Covers(rows, members int) bool {
	return q.Order == Descending && q.Range == nil && (q.Start+q.Limit <= rows || rows >= members)
}

// find returns the rows from index from to before to that q wants, and how many there are before its
// range, and within; false if the top may lack some: all rows of a range are in it if it ends below that.
func (t *Top) find(q *Query) (first, from, to, matches int, ok bool) {
	n := len(t.Entries)
	if q.Range == nil {
		return 0, min(q.Start, n), min(q.Start+q.Limit, n), 0, q.Limit > 0 && q.Covers(n, t.Members)
	}
	least, most := q.RawRange()
	if q.Order != Descending || n < t.Members && (n == 0 || t.Entries[n-1].Score >= min(least, most)) {
		return 0, 0, 0, 0, false
	}
	first = sort.Search(n, func(i int) bool { return t.Entries[i].Score <= most })
	matches = max(sort.Search(n, func(i int) bool { return t.Entries[i].Score < least })-first, 0)
	from, to = first+min(q.Start, matches), first+min(q.Start+q.Limit, matches)
	return first, from, to, matches, true
}

// Answer sets a to what the top, a copy that was known to be current at a time, has of the
// answer to q: [ErrNotKept], if it lacks rows or if only members are wanted. Members that it
// lacks have that error of their own.
func (t *Top) Answer(q *Query, a *Answer, currentAt time.Time) {
	first, from, to, matches, ok := t.find(q)
	if !ok || q.Mode == Dense {
		a.Fail(ErrNotKept)
		return
	}
	a.Begin(q, SourceHot, Stamp{State: t.State, Members: t.Members, Life: t.Life, Primed: t.Primed, At: t.PublishedAt}, currentAt)
	a.Entries, a.Data, a.Kept = t.Entries[from:to:to], t.Data, &t.kept
	if q.Range != nil {
		a.Start, a.Matches, a.Kept = first+q.Start, matches, nil
	}
	if q.Ranked() && len(a.Entries) > 0 {
		a.Ahead = aheadOf(t.Entries, from, q.Form)
	}
	a.Find(q, t.Entries, 0)
}

// Stamp tells which state of a board an answer shows.
type Stamp struct {
	// State has the board's seq; run and sum if they are known.
	State
	// Members is the number of members of the whole board.
	Members int
	// Life tells, once it is closed, that no command changes the board any more.
	Life Life
	// Primed tells that a board which sums up several periods has what the earlier ones give it.
	Primed bool
	// Foreign tells that the sorted set has not as many members as the writer left there: something else
	// has changed or deleted it. Only the origin tells it.
	Foreign bool
	// Adopting tells that the sum is unknown because a writer is adding up the members. Only the origin tells it.
	Adopting bool
	// At is when the answer was made, by the clock of this process.
	At time.Time
}
