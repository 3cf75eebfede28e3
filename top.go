package rankcache

import (
	"sort"
	"time"
)

const MaxTop = 500 // the most entries that a [Top] or one answered page holds

const MaxStart = 100_000_000 // the deepest first row of a page, 0-based

// Entry is one row of a board. Its score is the raw one, which a [ScoreForm] shows.
type Entry struct {
	Member string
	Score  float64
}

// Standing is a member's rank and raw score. Rank is 1-based, best first; 0: not on the board, or Trimmed.
type Standing struct {
	Member  string
	Score   float64
	Rank    int
	Trimmed bool // the member has a score but no rank: it is beyond the first n of the sorted set
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

// Top is the head of a board at one seq, best first. It never changes: its pointer is its version.
type Top struct {
	Board       BoardID
	Entries     []Entry
	State                 // has the board's seq; run and sum if they are known
	Members     int       // the number of members of the whole board
	Life        Life      // tells, once it is closed, that no command changes the board any more
	Primed      bool      // a board which sums up several periods has what the earlier ones give it
	PublishedAt time.Time // when this top was made, by the clock of this process
	Data        *Data     // what members have beside their scores; nil: nothing

	kept Kept
}

// TopOf returns the first rows of a board as they were answered.
func TopOf(board BoardID, a *Answer) *Top {
	return &Top{Board: board, Entries: a.Entries, State: a.State, Members: a.Members, Life: a.Life, Primed: a.Primed, PublishedAt: a.At, Data: a.Data}
}

// Covers reports whether a head of so many rows, of a board of so many members, has all the rows that q wants.
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

// Answer sets a to what the top, a copy that was known to be current at a time, has of the answer to q: [ErrNotKept],
// if it lacks rows or if only members are wanted. Members that it lacks have that error of their own.
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
	State        // has the board's seq; run and sum if they are known
	Members int  // the number of members of the whole board
	Life    Life // tells, once it is closed, that no command changes the board any more
	Primed  bool // a board which sums up several periods has what the earlier ones give it
	// Foreign tells that the sorted set has not as many members as the writer left there: something else
	// has changed or deleted it. Only the origin tells it.
	Foreign  bool
	Adopting bool      // the sum is unknown because a writer is adding up the members. Only the origin tells it.
	At       time.Time // when the answer was made, by the clock of this process
}
