package localboard

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"rankcache"
)

// view is a board at one moment, as readers see it. Its fields never change; the
// scores in its table do (see Publish).
type view struct {
	members
	ranking
	id    rankcache.BoardID
	state rankcache.State
	since time.Time // of publication
	most  int       // rows of its top
	depth *depth    // the board's
	made  atomic.Pointer[rankcache.Top]

	// overwritten is set before the next publication overwrites the first score of
	// this view: the changes that it makes, with the scores of this view as old.
	overwritten atomic.Pointer[[]change]
}

func (v *view) stamp() rankcache.Stamp {
	return rankcache.Stamp{State: v.state, Members: v.rows, At: v.since}
}

// top returns the first rows of a view that is pinned, or whose top is made. The first who
// asks makes it: many boards are published more often than they are read.
func (v *view) top() *rankcache.Top {
	if t := v.made.Load(); t != nil {
		return t
	}
	t := &rankcache.Top{Board: v.id, Entries: make([]rankcache.Entry, v.topRows()), State: v.state, Members: v.rows, PublishedAt: v.since}
	v.readEntries(&v.members, t.Entries, 0)
	if !v.made.CompareAndSwap(nil, t) {
		return v.made.Load() // all readers get the same
	}
	return t
}

func (v *view) topRows() int { return min(v.rows, v.most) }

// lookup fills in the score of each row's member as the table has it, and sets Rank
// to its handle + 1, for restore and rank. verify is as for findSlot.
func (v *view) lookup(rows []rankcache.Standing, verify bool) {
	for i := range rows {
		r := &rows[i]
		r.Score, r.Rank = absent, 0
		if h, s := v.findSlot(v.tag(r.Member), r.Member, verify); s != nil {
			r.Score, r.Rank = s.published(), int(h)+1
		}
	}
}

// restore sets the score of rows that were overwritten back to that of this view.
func (v *view) restore(rows []rankcache.Standing, overwritten []change) {
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

// rank replaces the handles that lookup left by ranks. It returns false if one is
// another member's with the same tag. The records are read last, while the index is
// still on its way from memory.
func (v *view) rank(rows []rankcache.Standing, direction rankcache.Direction) bool {
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

func (v *view) rankOne(r *rankcache.Standing, handle uint32, direction rankcache.Direction) {
	if isAbsent(r.Score) {
		r.Score, r.Rank = 0, 0
		return
	}
	before := v.rowsBefore(&v.members, newRow(r.Score, v.idKey(r.Member), handle))
	if r.Rank = before + 1; direction == rankcache.Ascending {
		r.Rank = v.rows - before
	}
}

// page returns the rows that exist of the range, those of the top if it has them.
func (v *view) page(start, limit int, direction rankcache.Direction) rankcache.Page {
	end := min(start+limit, v.rows)
	if direction == rankcache.Ascending || start < 0 || start >= end {
		return v.appendPage(nil, start, limit, direction)
	}
	if end > v.topRows() {
		v.depth.ask(end)
		return v.appendPage(nil, start, limit, direction)
	}
	return rankcache.Page{Stamp: v.stamp(), Start: start, Entries: v.top().Entries[start:end:end]}
}

// appendPage appends the rows that exist of the range to dst.
func (v *view) appendPage(dst []rankcache.Entry, start, limit int, direction rankcache.Direction) rankcache.Page {
	p := rankcache.Page{Stamp: v.stamp(), Start: start, Entries: dst}
	n := min(limit, v.rows-start)
	if start < 0 || n <= 0 {
		return p
	}
	first := start // of the rows, best first
	if direction == rankcache.Ascending {
		first = v.rows - start - n
	}
	p.Entries = slices.Grow(dst, n)[:len(dst)+n]
	rows := p.Entries[len(dst):]
	v.readEntries(&v.members, rows, first)
	if direction == rankcache.Ascending {
		slices.Reverse(rows)
	}
	return p
}

// pieces yields the rows leaf by leaf.
func (v *view) pieces(yield func([]rankcache.Entry) bool) {
	var buf [maxLeafRows]rankcache.Entry
	for l := range v.leaves {
		piece := buf[:l.n]
		l.readEntries(&v.members, piece, 0)
		if !yield(piece) {
			return
		}
	}
}

// ownBytes is the memory that the view shares with no other.
func (v *view) ownBytes() int {
	n := int(unsafe.Sizeof(view{})) + v.rootBuffer.bytes()
	if t := v.made.Load(); t != nil {
		n += int(unsafe.Sizeof(*t)) + cap(t.Entries)*int(unsafe.Sizeof(rankcache.Entry{}))
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
