package localboard

import "sync/atomic"

// Size of a new table and how full it may become, in entries. Linear probing at
// 4/5 looks at 3 entries for a hit and 13 for a miss: two cache lines.
const (
	tableFirst  = 64
	tableLoad   = 5 // full at 4/5
	tableGrowth = 2 // to 3/2 of its size
)

// table is an open-addressing hash table from the upper half of an id's hash to
// a handle. One writer puts; readers may look at the same time, because an entry
// is one word and is never changed or taken out. A table that is full is
// replaced by a larger one; readers of the old one find in it all that their
// view holds.
type table struct {
	entries []atomic.Uint64 // hash tag << 32 | handle + 1; 0 is free
	used    int
}

// newTable returns a table with room for n entries.
func newTable(n int) *table {
	size := max(tableFirst, n+n/(tableLoad-1)+1)
	return &table{entries: make([]atomic.Uint64, size)}
}

// first returns where the search for tag begins. The place comes from the tag
// alone, so that growing needs no id.
func (t *table) first(tag uint32) int {
	return int(uint64(tag) * uint64(len(t.entries)) >> 32)
}

func (t *table) next(i int) int {
	if i++; i < len(t.entries) {
		return i
	}
	return 0
}

func (t *table) full() bool {
	return t.used >= len(t.entries)-len(t.entries)/tableLoad
}

func (t *table) put(tag, handle uint32) {
	t.place(uint64(tag)<<32 | uint64(handle+1))
}

func (t *table) place(entry uint64) {
	i := t.first(uint32(entry >> 32))
	for t.entries[i].Load() != 0 {
		i = t.next(i)
	}
	t.entries[i].Store(entry)
	t.used++
}

// grown returns a larger table with the same entries.
func (t *table) grown() *table {
	to := &table{entries: make([]atomic.Uint64, len(t.entries)+len(t.entries)/tableGrowth)}
	for i := range t.entries {
		if e := t.entries[i].Load(); e != 0 {
			to.place(e)
		}
	}
	return to
}
