package localboard

import (
	"hash/maphash"
	"math"
	"sync/atomic"
	"unsafe"

	"rankcache/internal/yield"
	"rankcache/wire"
)

// absent is the score of a member that is not on the board. No score is NaN.
var absent = math.NaN()

func isAbsent(score float64) bool { return score != score }

// present returns 1 for the score of a member that is on the board, else 0.
func present(score float64) int {
	if isAbsent(score) {
		return 0
	}
	return 1
}

// members is every member that has a record, on the board or removed. The writer
// works on one members; a copy of the struct is a reader's: it has the members that
// existed when it was made, and shares their scores with the writer.
type members struct {
	records
	table     *table
	endHandle uint32 // handles from here on are of members that came later
	count     int
	seed      maphash.Seed
	// prefix is the common prefix of most ids; idKey leaves it out.
	prefix string
}

// newMembers returns an empty members with a table for n of them.
func newMembers(seed maphash.Seed, n int) members {
	return members{table: newTable(n), seed: seed}
}

// tag returns the upper half of the id's hash.
func (m *members) tag(id string) uint32 { return uint32(maphash.String(m.seed, id) >> 32) }

// find returns the member's handle and record, nil if it has none. A copy finds
// only its own members, though it shares the table.
func (m *members) find(id string) (uint32, *record) { return m.findByTag(m.tag(id), id) }

func (m *members) findByTag(tag uint32, id string) (uint32, *record) {
	h, s := m.findSlot(tag, id, true)
	if s == nil {
		return 0, nil
	}
	return h, m.at(h)
}

// findSlot returns the member's handle and slot, nil if it has none. Without verify
// it compares tags alone and does not wait for the record: two ids hardly ever have
// the same tag, but may.
func (m *members) findSlot(tag uint32, id string, verify bool) (uint32, *slot) {
	t := m.table
	for i := t.home(tag); ; i = t.next(i) {
		s := &t.slots[i]
		e := s.entry.Load()
		if e == 0 {
			return 0, nil
		}
		h := uint32(e) - 1
		if uint32(e>>32) == tag && h < m.endHandle && (!verify || m.at(h).id() == id) {
			return h, s
		}
	}
}

// prefetchBatch is how many updates' members are read from memory at once.
const prefetchBatch = 16

// prefetch returns the tags of the updates' members, of at most prefetchBatch, and
// reads what applying them needs of table and records. The loads do not depend on
// each other, so their cache misses overlap; one update after the other would wait
// for memory twice each.
func (m *members) prefetch(us []wire.Update) (tags [prefetchBatch]uint32) {
	for i := range us {
		tags[i] = m.tag(us[i].Member)
	}
	for i := range us {
		m.table.slots[m.table.home(tags[i])].entry.Load()
	}
	for i := range us {
		if h, ok := m.table.findTag(tags[i]); ok {
			m.at(h).changeNo.Load()
		}
	}
	return tags
}

// add makes a record without a score for id, which has none yet and fits. The
// record is complete before the table refers to it. Writer only.
func (m *members) add(id string, p *yield.Steps) (uint32, *record) {
	h, r := m.records.add(id)
	m.endHandle = m.end()
	m.count++
	if m.table.full() {
		m.grow(p)
	}
	r.slot = m.table.put(m.tag(id), h, absent)
	return h, r
}

// grow switches to a larger table. Readers of the old one finish in it. In a large one it
// takes 50 ns an entry: each record is read from memory.
func (m *members) grow(p *yield.Steps) {
	m.table = m.table.resized(p, func(handle, slot uint32) { m.at(handle).slot = slot })
}

func (m *members) bytes() int {
	return m.records.bytes() + int(unsafe.Sizeof(slot{}))*len(m.table.slots)
}

// published returns the score of r that readers see, absent if there is none.
// Writer only, as publish.
func (m *members) published(r *record) float64 { return m.table.slots[r.slot].published() }

func (m *members) publish(r *record, score float64) { m.table.slots[r.slot].publish(score) }

// Size of a new table and how full it may become, in slots. Linear probing at
// 4/5 reads 3 slots for a hit and 13 for a miss.
const (
	minTableSlots = 64
	tableLoad     = 5 // full at 4/5
	tableGrowth   = 2 // to 3/2 of its size
)

// table is an open-addressing hash table from an id's tag to a handle and the
// published score. Readers may search it while the one writer puts: an entry is one
// word and is never changed or removed. A full table is replaced by a larger one;
// readers of the old one find in it all members of their view.
type table struct {
	slots []slot
	used  int
}

// slot is a member's place in the table. The score is here and not in the record:
// the search for its rank can begin while the record, which confirms the id, is
// still on its way from memory.
type slot struct {
	entry atomic.Uint64 // tag << 32 | handle + 1; 0 is free
	score atomic.Uint64 // bits of the published score, or of absent
}

// newTable returns a table with room for n entries.
func newTable(n int) *table {
	size := max(minTableSlots, n+n/(tableLoad-1)+1)
	return &table{slots: make([]slot, size)}
}

// home returns where the search for tag begins. It depends on the tag alone, so that
// growing needs no id.
func (t *table) home(tag uint32) int {
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

// put adds an entry and returns its slot. The score is stored before the entry that
// refers to it.
func (t *table) put(tag, handle uint32, score float64) uint32 {
	i := t.home(tag)
	for t.slots[i].entry.Load() != 0 {
		i = t.next(i)
	}
	t.slots[i].publish(score)
	t.slots[i].entry.Store(uint64(tag)<<32 | uint64(handle+1))
	t.used++
	return uint32(i)
}

// findTag returns the handle of a member with this tag.
func (t *table) findTag(tag uint32) (handle uint32, ok bool) {
	for i := t.home(tag); ; i = t.next(i) {
		e := t.slots[i].entry.Load()
		if e == 0 || uint32(e>>32) == tag {
			return uint32(e) - 1, e != 0
		}
	}
}

// resized returns a larger table with the same entries, and calls moved with the
// new slot of each handle.
func (t *table) resized(p *yield.Steps, moved func(handle, slot uint32)) *table {
	to := &table{slots: make([]slot, len(t.slots)+len(t.slots)/tableGrowth)}
	for i := range t.slots {
		p.Done(1)
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
