package localboard

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// Size of a new table and how full it may become. Linear probing at 4/5 reads 3 slots for a hit and 13 for a miss.
const (
	minTableSlots = 64
	tableLoad     = 5  // full at 4/5
	tableSpare    = 64 // a new one has room for a 64th more than it is made for
	fillGrowth    = 2  // to 3/2 of its size while a board is filled
	openGrowth    = 8  // to 9/8 once it is open: 5 ns for each entry
	// pageSlots is how many slots are allocated at once, a power of two. One piece of memory for a table of 2,000,000
	// entries would take 40 ms to get and to clear, in which the runtime lets nothing else run.
	pageSlots = 16 << 10
)

// table is an open-addressing hash table from an id's tag to handle and published score. Readers may search while the
// one writer puts: an entry is one word, never removed. A full table is replaced by a larger one.
type table struct {
	pages      []*slot // the first of pageSlots each; of fewer in the last page
	size, used int     // slots
}

// slot is a member's place in the table, with the score: its rank can be searched while the record is on its way.
type slot struct {
	entry atomic.Uint64 // tag << 32 | handle + 1; 0 is free
	score atomic.Uint64 // bits of the published score, or of absent
}

// newTable returns a table with room for n entries and some more.
func newTable(n int) *table { return tableOf(slotsFor(n)) }

// slotsFor returns the size of such a table.
func slotsFor(n int) int {
	n += n / tableSpare
	return max(minTableSlots, n+n/(tableLoad-1)+1)
}

func tableOf(size int) *table {
	t := &table{size: size}
	for from := 0; from < size; from += pageSlots {
		t.pages = append(t.pages, &make([]slot, min(pageSlots, size-from))[0])
	}
	return t
}

func (t *table) at(i int) *slot {
	return (*slot)(unsafe.Add(unsafe.Pointer(t.pages[uint(i)/pageSlots]), uintptr(i)%pageSlots*unsafe.Sizeof(slot{})))
}

// home returns where the search for tag begins. It depends on the tag alone, so that growing needs no id.
func (t *table) home(tag uint32) int { return int(uint64(tag) * uint64(t.size) >> 32) }

func (t *table) next(i int) int {
	if i++; i < t.size {
		return i
	}
	return 0
}

func (t *table) full() bool { return t.used >= t.size-t.size/tableLoad }

// put adds an entry and returns its slot. The score is stored before the entry that refers to it.
func (t *table) put(tag, handle uint32, score float64) *slot {
	i := t.home(tag)
	for t.at(i).entry.Load() != 0 {
		i = t.next(i)
	}
	s := t.at(i)
	s.publish(score)
	s.entry.Store(entryOf(tag, handle))
	t.used++
	return s
}

func entryOf(tag, handle uint32) uint64 { return uint64(tag)<<32 | uint64(handle+1) }

func (t *table) find(tag, handle uint32) *slot {
	i, entry := t.home(tag), entryOf(tag, handle)
	for t.at(i).entry.Load() != entry {
		i = t.next(i)
	}
	return t.at(i)
}

// findTag returns the handle of a member with this tag.
func (t *table) findTag(tag uint32) (handle uint32, ok bool) {
	for i := t.home(tag); ; i = t.next(i) {
		e := t.at(i).entry.Load()
		if e == 0 || uint32(e>>32) == tag {
			return uint32(e) - 1, e != 0
		}
	}
}

// resized returns a table of another size with the same entries. Both are walked in order of tags.
func (t *table) resized(size int) *table { return t.copyTo(tableOf(size)) }

func (t *table) copyTo(to *table) *table {
	for i := range t.size {
		s := t.at(i)
		if e := s.entry.Load(); e != 0 {
			to.put(uint32(e>>32), uint32(e)-1, s.published())
		}
	}
	return to
}

func (s *slot) published() float64 { return math.Float64frombits(s.score.Load()) }

func (s *slot) publish(score float64) { s.score.Store(math.Float64bits(score)) }
