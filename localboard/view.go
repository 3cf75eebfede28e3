package localboard

import (
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"rankcache"
)

// view is a board at one moment, as readers see it. Its fields never change; the
// scores in its table do (see Publish).
type view struct {
	members
	ranking
	topRows topRows
	top     *rankcache.Top
	depth   *depth // the board's

	// overwritten is set before the next publication overwrites the first score of
	// this view: the changes that it makes, with the scores of this view as old.
	overwritten atomic.Pointer[[]change]
}

func (v *view) stamp() rankcache.Stamp {
	return rankcache.Stamp{State: v.top.State, Members: v.top.Members, At: v.top.PublishedAt}
}

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

// page returns the rows that exist of the range.
func (v *view) page(start, limit int, direction rankcache.Direction) rankcache.Page {
	p := rankcache.Page{Stamp: v.stamp(), Start: start}
	n := min(limit, v.rows-start)
	if start < 0 || n <= 0 {
		return p
	}
	first := start // of the rows, best first
	if direction == rankcache.Ascending {
		first = v.rows - start - n
	}
	if direction == rankcache.Descending && start+n <= len(v.top.Entries) {
		p.Entries = v.top.Entries[start : start+n : start+n]
		return p
	}
	p.Entries = make([]rankcache.Entry, n)
	v.readEntries(&v.members, p.Entries, first)
	if direction == rankcache.Ascending {
		slices.Reverse(p.Entries)
	} else {
		v.depth.ask(start + n)
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
	return int(unsafe.Sizeof(view{})) + v.rootBuffer.bytes() + v.topRows.bytes()
}

// rowsAbove returns how many rows have a score above bound or, unless strict, equal to it.
func (v *view) rowsAbove(bound float64, strict bool) int {
	key := newSortKey(bound+0, math.MaxUint64) // behind no row with that score; +0 makes -0 a 0
	if !strict {
		key.score-- // of the next lower score
	}
	return v.keysBefore(key)
}
