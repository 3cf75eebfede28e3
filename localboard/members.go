package localboard

import (
	"hash/maphash"
	"math"
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
func (m *members) find(id string) (uint32, *record) {
	tag := m.tag(id)
	t := m.table
	for i := t.first(tag); ; i = t.next(i) {
		e := t.entries[i].Load()
		if e == 0 {
			return 0, nil
		}
		if h := uint32(e) - 1; uint32(e>>32) == tag && h < m.limit {
			if r := m.at(h); r.name() == id {
				return h, r
			}
		}
	}
}

// add makes a record for id, which is not known yet and fits, with no score.
// The record is complete before the table leads to it. Writer only.
func (m *members) add(id string) (uint32, *record) {
	h, r := m.records.add(id)
	r.publish(absent)
	m.limit = m.end()
	m.count++
	if m.table.full() {
		m.table = m.table.grown()
	}
	m.table.put(m.tag(id), h)
	return h, r
}

func (m *members) bytes() int { return m.records.bytes() + 8*len(m.table.entries) }

func (r *record) published() float64 { return math.Float64frombits(r.score.Load()) }

func (r *record) publish(score float64) { r.score.Store(math.Float64bits(score)) }
