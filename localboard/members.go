package localboard

import (
	"hash/maphash"
	"math"
	"unsafe"

	"rankcache/wire"
)

// absent is the score of a member that is not on the board. NaN never is a
// score.
var absent = math.NaN()

func isAbsent(score float64) bool { return score != score }

// members holds every member that the board knows of. The writer works on one
// members; a copy of it is a reader's: the copy has the members that existed when
// it was made, whose scores it shares with the writer.
type members struct {
	records
	table *table
	limit uint32 // handles from here on are of members that came later
	count int
	seed  maphash.Seed
	// prefix is the beginning that most ids share; sort keys leave it out.
	prefix string
}

// newMembers returns an empty members with a table for n of them.
func newMembers(seed maphash.Seed, n int) members {
	return members{table: newTable(n), seed: seed}
}

func (m *members) tag(id string) uint32 { return uint32(maphash.String(m.seed, id) >> 32) }

// find returns the member's record and handle, nil if it is not known. A copy
// finds only what it has, though it shares the table.
func (m *members) find(id string) (uint32, *record) { return m.findTagged(m.tag(id), id) }

// findTagged is find for an id whose tag is known already.
func (m *members) findTagged(tag uint32, id string) (uint32, *record) {
	h, s := m.look(tag, id, true)
	if s == nil {
		return 0, nil
	}
	return h, m.at(h)
}

// look returns the member's handle and slot, nil if it is not known. Unless it is
// to be sure, it goes by the hash alone and does not wait for the record: the
// member hardly ever is another one, but may be.
func (m *members) look(tag uint32, id string, sure bool) (uint32, *slot) {
	t := m.table
	for i := t.first(tag); ; i = t.next(i) {
		s := &t.slots[i]
		e := s.entry.Load()
		if e == 0 {
			return 0, nil
		}
		h := uint32(e) - 1
		if uint32(e>>32) == tag && h < m.limit && (!sure || m.at(h).name() == id) {
			return h, s
		}
	}
}

// fetchAhead is how many updates' members are fetched from memory at once.
const fetchAhead = 16

// fetch returns the members' tags of the updates, fetchAhead at the most, and looks
// at what they will need of the table and of the records. Looks that do not depend on
// each other, with little in between, are answered together, where one update after
// the other would wait for memory twice each.
func (m *members) fetch(us []wire.Update) (tags [fetchAhead]uint32) {
	for i := range us {
		tags[i] = m.tag(us[i].Member)
	}
	for i := range us {
		m.table.slots[m.table.first(tags[i])].entry.Load()
	}
	for i := range us {
		if h, ok := m.table.any(tags[i]); ok {
			m.at(h).change.Load()
		}
	}
	return tags
}

// add makes a record for id, which is not known yet and fits, with no score.
// The record is complete before the table leads to it. Writer only.
func (m *members) add(id string) (uint32, *record) {
	h, r := m.records.add(id)
	m.limit = m.end()
	m.count++
	if m.table.full() {
		m.grow()
	}
	r.slot = m.table.put(m.tag(id), h, absent)
	return h, r
}

// grow goes over to a larger table. Readers of the old one finish in it.
func (m *members) grow() {
	m.table = m.table.grown(func(handle, slot uint32) { m.at(handle).slot = slot })
}

func (m *members) bytes() int {
	return m.records.bytes() + int(unsafe.Sizeof(slot{}))*len(m.table.slots)
}

// published returns the score that readers see of r, absent if there is none.
// Writer only, as publish.
func (m *members) published(r *record) float64 { return m.table.slots[r.slot].published() }

func (m *members) publish(r *record, score float64) { m.table.slots[r.slot].publish(score) }
