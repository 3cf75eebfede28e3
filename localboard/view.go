package localboard

import (
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

	// overwritten is set before the next publication overwrites the first score of
	// this view: the changes that it makes, with the scores of this view as old.
	overwritten atomic.Pointer[[]change]
}

// ranking is an immutable version of the index. Its memory is used again when it is
// no longer pinned.
type ranking struct {
	rootBuffer
	rows    int
	version uint64 // no node in it has a higher one
	pins    *pins
	free    *freeList // of the index that it is a version of
}

// rootBuffer is the memory that a ranking shares with no other version.
type rootBuffer struct {
	root
	starts []uint32 // rows before each inner node
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

// rowsBefore returns how many rows stand before r, which is in the ranking.
func (k *ranking) rowsBefore(m *members, r row) int {
	i := k.childFor(m, r)
	in := k.children[i]
	j := in.childFor(m, r)
	return int(k.starts[i]+in.starts[j]) + in.leaves[j].indexOf(m, r)
}

// keysBefore returns how many rows have a sort key that stands before a.
func (k *ranking) keysBefore(a sortKey) int {
	if k.rows == 0 {
		return 0
	}
	i := countBefore(k.keys[1:], a)
	in := k.children[i]
	j := max(countInNode(&in.keys, a), 1) - 1
	return int(k.starts[i]+in.starts[j]) + countInNode(&in.leaves[j].keys, a)
}

// readEntries fills dst with the rows from start on, best first. There must be
// that many.
func (k *ranking) readEntries(m *members, dst []rankcache.Entry, start int) {
	if len(dst) == 0 {
		return
	}
	i, found := slices.BinarySearch(k.starts, uint32(start))
	if !found {
		i--
	}
	l, from := k.children[i].locate(start - int(k.starts[i]))
	for ; len(dst) > 0; i, l = i+1, 0 {
		in := k.children[i]
		for ; l < in.n && len(dst) > 0; l, from = l+1, 0 {
			n := min(in.leaves[l].n-from, len(dst))
			in.leaves[l].readEntries(m, dst[:n], from)
			dst = dst[n:]
		}
	}
}

func (l *leaf) readEntries(m *members, dst []rankcache.Entry, from int) {
	for i := range dst {
		dst[i] = rankcache.Entry{Member: m.at(l.handles[from+i]).id(), Score: l.keys[from+i].value()}
	}
}

// bytes leaves out the nodes.
func (r *rootBuffer) bytes() int {
	return cap(r.children)*8 + cap(r.keys)*int(unsafe.Sizeof(sortKey{})) + cap(r.starts)*4
}
