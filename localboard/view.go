package localboard

import (
	"math"
	"slices"
	"sort"
	"sync/atomic"
	"time"
	"unsafe"

	"rankcache"
)

// view is a board at one moment, as readers see it. Its fields never change; the scores in its table do (see Publish).
type view struct {
	members
	ranking
	id    rankcache.BoardID
	state rankcache.State
	life  rankcache.Life
	data  *rankcache.Data
	since time.Time                         // of publication
	most  int                               // rows of its top
	depth *depth                            // the board's
	head  atomic.Pointer[[]rankcache.Entry] // its first rows, once somebody has asked for them
	kept  rankcache.Kept

	// overwritten is set before the next publication overwrites scores: its changes, with this view's scores as old.
	overwritten atomic.Pointer[[]change]
}

func (v *view) stamp() rankcache.Stamp {
	return rankcache.Stamp{State: v.state, Members: v.rows, Life: v.life, At: v.since}
}

// top returns the first rows, made by the first who asks: many boards are published more often than read.
func (v *view) top() []rankcache.Entry {
	if head := v.head.Load(); head != nil {
		return *head
	}
	head := make([]rankcache.Entry, v.topRows())
	v.readEntries(&v.members, head, 0)
	if !v.head.CompareAndSwap(nil, &head) {
		return *v.head.Load() // all readers get the same
	}
	return head
}

func (v *view) topRows() int { return min(v.rows, v.most) }

// lookup sets each row's score as the table has it, and Rank to its handle + 1. verify is as for findSlot.
func (v *view) lookup(rows []rankcache.Own, verify bool) {
	for i := range rows {
		r := &rows[i]
		r.Score, r.Rank = absent, 0
		if h, s := v.findSlot(v.tag(r.Member), r.Member, verify); s != nil {
			r.Score, r.Rank = s.published(), int(h)+1
		}
	}
}

// restore sets the score of rows that were overwritten back to that of this view.
func (v *view) restore(rows []rankcache.Own, overwritten []change) {
	for i := range rows {
		r := &rows[i]
		if r.Rank == 0 {
			continue
		}
		n := int(v.at(uint32(r.Rank - 1)).changeNo.Load())
		if n > 0 && n <= len(overwritten) { // a larger one only if the reader has to retry
			r.Score = overwritten[n-1].old
		}
	}
}

// rank replaces the handles that lookup left by ranks; false if one is another member's with the same tag.
func (v *view) rank(rows []rankcache.Own, direction rankcache.Direction) bool {
	for i := range rows {
		r := &rows[i]
		if r.Rank == 0 {
			r.Score = 0
			continue
		}
		h := uint32(r.Rank - 1)
		v.rankOne(r, h, direction)
		if v.at(h).id() != r.Member {
			return false
		}
	}
	return true
}

func (v *view) rankOne(r *rankcache.Own, handle uint32, direction rankcache.Direction) {
	if isAbsent(r.Score) {
		r.Score, r.Rank = 0, 0
		return
	}
	before := v.rowsBefore(&v.members, newRow(r.Score, v.idKey(r.Member), handle))
	if r.Rank = before + 1; direction == rankcache.Ascending {
		r.Rank = v.rows - before
	}
}

// place sets each row's score to that which q names, and its rank to that of such a row.
func (v *view) place(rows []rankcache.Own, q *rankcache.Query) {
	for i := range rows {
		r := &rows[i]
		r.Score = q.Scores[i] + 0 // -0 becomes 0
		before, is := v.rowsBeforeOne(r.Score, r.Member)
		if r.Rank = before + 1; q.Order == rankcache.Ascending {
			r.Rank = v.rows - before - is + 1
		}
	}
}

// rowsBeforeOne returns how many rows stand before one with that score and member, and 1 if it is on the board, else 0.
func (v *view) rowsBeforeOne(score float64, member string) (before, is int) {
	key := newSortKey(score, v.idKey(member))
	next := key // which stands behind all rows with the key, and before all others that do
	if next.idKey--; key.idKey == 0 {
		next.score--
	}
	before = v.keysBefore(key)
	same := v.keysBefore(next) - before
	var row [1]rankcache.Entry
	at := func(i int) string {
		v.readEntries(&v.members, row[:], before+i)
		return row[0].Member
	}
	n := sort.Search(same, func(i int) bool { return at(i) <= member })
	if n < same && at(n) == member {
		is = 1
	}
	return before + n, is
}

// answer sets the rows of an answer to q, and what it wants beside them. The standings of its members are set.
func (v *view) answer(q *rankcache.Query, a *rankcache.Answer) {
	a.Stamp, a.Data = v.stamp(), v.data
	switch {
	case q.Range != nil:
		v.answerRange(q, a)
	case q.Limit == 0:
		a.Kept = &v.kept
	default:
		if q.Covers(v.topRows(), v.rows) {
			a.Kept = &v.kept
		}
		a.Entries = v.rowsFrom(q.Start, q.Limit, q.Order)
	}
	for i := range a.Own {
		v.surround(&a.Own[i], q, a.Stamp)
	}
	if q.Ranked() {
		v.count(q, a)
	}
}

// answerRange answers with rows of the scores that q names.
func (v *view) answerRange(q *rankcache.Query, a *rankcache.Answer) {
	least, most := q.RawRange()
	first := v.rowsAbove(most, true)
	a.Matches = max(v.rowsAbove(least, false)-first, 0)
	if q.Order == rankcache.Ascending {
		first = v.rows - first - a.Matches
	}
	a.Start = first + q.Start
	a.Entries = v.rowsFrom(a.Start, min(q.Limit, a.Matches-q.Start), q.Order)
}

// rowsFrom returns the rows that exist of the range: those of the head if it has them.
func (v *view) rowsFrom(start, limit int, direction rankcache.Direction) []rankcache.Entry {
	end := min(start+limit, v.rows)
	switch {
	case start >= end:
		return nil
	case direction == rankcache.Ascending:
		rows := make([]rankcache.Entry, end-start)
		v.readEntries(&v.members, rows, v.rows-end)
		slices.Reverse(rows)
		return rows
	case end <= v.topRows():
		return v.top()[start:end:end]
	}
	v.depth.ask(end)
	rows := make([]rankcache.Entry, end-start)
	v.readEntries(&v.members, rows, start)
	return rows
}

func (v *view) pieces(yield func([]rankcache.Entry) bool) {
	var buf [maxLeafRows]rankcache.Entry
	for l := range v.leaves {
		piece := buf[:l.n]
		l.readEntries(&v.members, piece, 0)
		for i := 0; v.data != nil && i < len(piece); i++ {
			piece[i].Member = rankcache.JoinData(piece[i].Member, v.data.Of(piece[i].Member))
		}
		if !yield(piece) {
			return
		}
	}
}

// ownBytes is the memory that the view shares with no other.
func (v *view) ownBytes() int {
	n := int(unsafe.Sizeof(view{})) + v.ranking.ownBytes()
	if head := v.head.Load(); head != nil {
		n += cap(*head) * int(unsafe.Sizeof(rankcache.Entry{}))
	}
	return n
}

// rowsAbove returns how many rows have a score above bound or, unless strict, equal to it.
func (v *view) rowsAbove(bound float64, strict bool) int {
	key := newSortKey(bound+0, math.MaxUint64) // behind no row with that score; +0 makes -0 a 0
	if !strict {
		key.score-- // of the next lower score
	}
	return v.keysBefore(key)
}
