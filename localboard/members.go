package localboard

import (
	"hash/maphash"
	"math"
	"unsafe"

	"rankcache/wire"
)

var absent = math.NaN() // the score of a member that is not on the board. No score is NaN.

func isAbsent(score float64) bool { return score != score }

// present returns 1 for the score of a member that is on the board, else 0.
func present(score float64) int {
	if isAbsent(score) {
		return 0
	}
	return 1
}

// members is every member that has a record, on the board or removed. The writer works on one members; a copy of the
// struct is a reader's: it has the members that existed when it was made, and shares their scores with the writer.
type members struct {
	records
	table     *table
	endHandle uint32 // handles from here on are of members that came later
	count     int
	growth    int // the table grows by this part of its size
	seed      maphash.Seed
	prefix    string // the common prefix of most ids; idKey leaves it out
}

// newMembers returns an empty members with a table for n of them.
func newMembers(seed maphash.Seed, n int) members {
	return members{table: newTable(n), growth: fillGrowth, seed: seed}
}

// tag returns the upper half of the id's hash.
func (m *members) tag(id string) uint32 { return uint32(maphash.String(m.seed, id) >> 32) }

// member is what the writer knows of one: where record and score are. It is valid until the next is added.
type member struct {
	*record
	*slot
	handle, tag uint32
}

// find returns the member, whose record is nil if unknown. A copy finds its own only, though the table is shared.
func (m *members) find(id string) member { return m.findByTag(m.tag(id), id) }

func (m *members) findByTag(tag uint32, id string) member {
	h, s := m.findSlot(tag, id, true)
	if s == nil {
		return member{}
	}
	return member{m.at(h), s, h, tag}
}

func (m *members) of(handle uint32, r *record) member {
	tag := m.tag(r.id())
	return member{r, m.table.find(tag, handle), handle, tag}
}

// findSlot returns a member's handle and slot, nil: none. Without verify it compares tags alone, which hardly ever err.
func (m *members) findSlot(tag uint32, id string, verify bool) (uint32, *slot) {
	t := m.table
	for i := t.home(tag); ; i = t.next(i) {
		s := t.at(i)
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

const prefetchBatch = 16 // how many updates' members are read from memory at once

// prefetch returns the tags of up to prefetchBatch updates' members, and reads what applying them needs, so that the
// cache misses overlap: one after the other each would wait for memory twice.
func (m *members) prefetch(us []wire.Update) (tags [prefetchBatch]uint32) {
	for i := range us {
		tags[i] = m.tag(us[i].Member)
	}
	for i := range us {
		m.table.at(m.table.home(tags[i])).entry.Load()
	}
	for i := range us {
		if h, ok := m.table.findTag(tags[i]); ok {
			m.at(h).changeNo.Load()
		}
	}
	return tags
}

// add makes a record without a score for a new id, complete before the table refers to it. Writer only.
func (m *members) add(id string) member {
	h, r := m.records.add(id)
	m.endHandle = m.end()
	m.count++
	if m.table.full() {
		m.grow()
	}
	tag := m.tag(id)
	return member{r, m.table.put(tag, h, absent), h, tag}
}

// grow switches to a larger table. Readers of the old one finish in it.
func (m *members) grow() { m.table = m.table.resized(m.table.size + m.table.size/m.growth) }

// fit switches to a table for the present members if that is smaller. No reader may use the present one.
func (m *members) fit() {
	if size := slotsFor(m.count); size < m.table.size {
		m.table = m.table.resized(size)
	}
	m.growth = openGrowth
}

func (m *members) bytes() int { return m.records.bytes() + int(unsafe.Sizeof(slot{}))*m.table.size }
