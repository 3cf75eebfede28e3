package localboard

import (
	"math"
	"sync/atomic"
)

// Size of a new table and how full it may become, in slots. Linear probing at
// 4/5 looks at 3 slots for a hit and 13 for a miss.
const (
	tableFirst  = 64
	tableLoad   = 5 // full at 4/5
	tableGrowth = 2 // to 3/2 of its size
)

// table is an open-addressing hash table from the upper half of an id's hash to
// a handle and the published score. One writer puts; readers may look at the same
// time, because an entry is one word and is never changed or taken out. A table
// that is full is replaced by a larger one; readers of the old one find in it all
// that their view holds.
type table struct {
	slots []slot
	used  int
}

// slot is a member's place in the table. The score stands here and not in the
// record: a search for its rank can begin while the record, by which the member
// is known for certain, is still on its way from memory.
type slot struct {
	entry atomic.Uint64 // hash tag << 32 | handle + 1; 0 is free
	score atomic.Uint64 // the published score's bits, absent's if there is none
}

// newTable returns a table with room for n entries.
func newTable(n int) *table {
	size := max(tableFirst, n+n/(tableLoad-1)+1)
	return &table{slots: make([]slot, size)}
}

// first returns where the search for tag begins. The place comes from the tag
// alone, so that growing needs no id.
func (t *table) first(tag uint32) int {
	return int(uint64(tag) * uint64(len(t.slots)) >> 32)
}

func (t *table) next(i int) int {
	if i++; i < len(t.slots) {
		return i
	}
	return 0
}

func (t *table) full() bool {
	return t.used >= len(t.slots)-len(t.slots)/tableLoad
}

// put adds an entry and returns its slot. The score is there before the entry
// leads to it.
func (t *table) put(tag, handle uint32, score float64) uint32 {
	i := t.first(tag)
	for t.slots[i].entry.Load() != 0 {
		i = t.next(i)
	}
	t.slots[i].publish(score)
	t.slots[i].entry.Store(uint64(tag)<<32 | uint64(handle+1))
	t.used++
	return uint32(i)
}

// any returns the handle of a member with this tag.
func (t *table) any(tag uint32) (handle uint32, ok bool) {
	for i := t.first(tag); ; i = t.next(i) {
		e := t.slots[i].entry.Load()
		if e == 0 || uint32(e>>32) == tag {
			return uint32(e) - 1, e != 0
		}
	}
}

// grown returns a larger table with the same entries, and calls moved with the
// new slot of each handle.
func (t *table) grown(moved func(handle, slot uint32)) *table {
	to := &table{slots: make([]slot, len(t.slots)+len(t.slots)/tableGrowth)}
	for i := range t.slots {
		s := &t.slots[i]
		if e := s.entry.Load(); e != 0 {
			handle := uint32(e) - 1
			moved(handle, to.put(uint32(e>>32), handle, s.published()))
		}
	}
	return to
}

func (s *slot) published() float64 { return math.Float64frombits(s.score.Load()) }

func (s *slot) publish(score float64) { s.score.Store(math.Float64bits(score)) }
