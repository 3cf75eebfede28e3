package localboard

import (
	"hash/maphash"
	"math"
	"sync/atomic"
)

// pageSlots is how many slots are allocated at a time: 24 KiB, one of the
// allocator's sizes.
const pageSlots = 1024

// absent is the score of a member that is not on the board. NaN never is a
// score.
var absent = math.NaN()

func isAbsent(score float64) bool { return score != score }

// slot is what is known of one member, 24 bytes. The order of its fields keeps
// it free of padding.
type slot struct {
	// score is the published score's bits, absent's if there is none. Readers
	// load it; only the writer stores.
	score atomic.Uint64
	// seq is the highest seq applied to the member, also after its removal, so
	// that an older update that comes late is known for one. Writer only.
	seq uint64
	// id is where the member's id lies in the arena. Never changed.
	id uint32
	// change is the member's place in the list of changes, counted from 1; 0 if
	// it is unchanged since the last publication. Readers load it too.
	change atomic.Uint32
}

type page [pageSlots]slot

// members holds every member that the board knows of, each under a handle, its
// number in order of arrival. The writer works on one members; a copy of it is
// a reader's: the copy sees the slots that existed when it was made, whose
// scores it shares with the writer.
type members struct {
	ids   arena
	pages []*page
	table *table
	n     uint32 // slots in use
	seed  maphash.Seed
	// prefix is the beginning that most ids share; sort keys leave it out.
	prefix string
}

// newMembers returns an empty members with a table for n of them.
func newMembers(seed maphash.Seed, n int) members {
	return members{table: newTable(n), seed: seed}
}

func (m *members) slot(handle uint32) *slot {
	return &m.pages[handle/pageSlots][handle%pageSlots]
}

func (m *members) id(handle uint32) string { return m.ids.at(m.slot(handle).id) }

func (m *members) tag(id string) uint32 { return uint32(maphash.String(m.seed, id) >> 32) }

// find returns the handle of id. A copy finds only what it holds: an entry
// added later has a handle of n or more.
func (m *members) find(id string) (handle uint32, ok bool) {
	tag := m.tag(id)
	t := m.table
	for i := t.first(tag); ; i = t.next(i) {
		e := t.entries[i].Load()
		if e == 0 {
			return 0, false
		}
		if uint32(e>>32) != tag {
			continue
		}
		if h := uint32(e) - 1; h < m.n && m.id(h) == id {
			return h, true
		}
	}
}

// add gives id, which is not known yet and fits, a slot with no score. The slot
// is complete before the table leads to it. Writer only.
func (m *members) add(id string) uint32 {
	h := m.n
	if h%pageSlots == 0 {
		m.pages = append(m.pages, new(page))
	}
	s := m.slot(h)
	s.id = m.ids.add(id)
	s.score.Store(math.Float64bits(absent))
	m.n++
	if m.table.full() {
		m.table = m.table.grown()
	}
	m.table.put(m.tag(id), h)
	return h
}

// score returns the published score of a slot.
func (s *slot) published() float64 { return math.Float64frombits(s.score.Load()) }

func (s *slot) publish(score float64) { s.score.Store(math.Float64bits(score)) }
