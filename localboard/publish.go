package localboard

import "slices"

// mergeShare: with more changes than rows / mergeShare a publication rebuilds the index in one pass, else row by row.
// Of 3,000 to 1,000,000 members a pass costs as much as changes of a 20th to a 40th of them, spread evenly, an 8th or
// more of smaller boards; rows stay cheaper where some members change more often.
const mergeShare = 16

const maxSpareChanges = 4096 // for how many changes a list is made when it is empty

// change is a member's new score, not yet published.
type change struct {
	handle    uint32
	tag       uint32
	idKey     uint64  // the member's, taken while its id is in the cache
	old, next float64 // old is the score published before
}

// updateIndex brings the index up to the changes.
func (s *writerState) updateIndex() {
	if len(s.changes) > s.index.rows/mergeShare {
		s.index = s.index.merged(&s.members, s.changedHandles(), s.changedRows())
		return
	}
	for i := range s.changes {
		s.updateRow(&s.changes[i])
	}
}

// sortLocked makes the index, unless the board is reset. While it sorts without the lock changes wait in the list.
func (b *Board) sortLocked() {
	b.members.fit()
	b.members.prefix, b.liveAtCompaction = b.members.commonPrefix(), b.live
	b.sorting, b.numbered = true, true
	frozen, rows, resets := b.members, b.live, b.resets // as a reader's
	b.mu.Unlock()
	b.paused()
	x := build(&frozen, frozen.liveRows(rows), 0)
	b.mu.Lock()
	if b.resets == resets {
		b.index, b.sorting, b.numbered = x, false, false
	}
}

func (s *writerState) updateRow(c *change) {
	from, to := newRow(c.old, c.idKey, c.handle), newRow(c.next, c.idKey, c.handle)
	switch was, is := !isAbsent(c.old), !isAbsent(c.next); {
	case was && is && c.old != c.next:
		s.index.update(&s.members, from, to)
	case was && !is:
		s.index.remove(&s.members, from)
	case !was && is:
		s.index.insert(&s.members, to)
	}
}

// liveRows returns a row for every member with a score; there are left of them.
func (m *members) liveRows(left int) (rows rowPieces) {
	for h, r := range m.all {
		if score := m.of(h, r).published(); !isAbsent(score) {
			rows.add(newRow(score, m.idKey(r.id()), h), left)
			left--
		}
	}
	return rows
}

func (s *writerState) changedHandles() bitset {
	set := newBitset(s.members.endHandle)
	for i := range s.changes {
		set.put(s.changes[i].handle)
	}
	return set
}

// changedRows returns the new rows of members that have a change, unsorted.
func (s *writerState) changedRows() []row {
	rows := make([]row, 0, len(s.changes))
	for _, c := range s.changes {
		if !isAbsent(c.next) {
			rows = append(rows, newRow(c.next, c.idKey, c.handle))
		}
	}
	return rows
}

// storeScores writes the new scores to the table, a batch loaded ahead so that cache misses overlap.
func (s *writerState) storeScores(changes []change) {
	t := s.members.table
	for batch := range slices.Chunk(changes, prefetchBatch) {
		for i := range batch {
			t.at(t.home(batch[i].tag)).entry.Load()
		}
		for i := range batch {
			c := &batch[i]
			t.find(c.tag, c.handle).publish(c.next)
		}
	}
}

func (s *writerState) resetChanges(changes []change) {
	for i := range changes {
		s.members.at(changes[i].handle).changeNo.Store(0)
	}
	s.freshStorage = false
	if len(changes) > 0 { // else no reader refers to the list
		s.changes = make([]change, 0, min(len(changes), maxSpareChanges))
	}
}

type bitset []uint64 // a set of handles

func newBitset(end uint32) bitset { return make(bitset, end/64+1) }

func (s bitset) put(h uint32) { s[h/64] |= 1 << (h % 64) }

func (s bitset) has(h uint32) bool { return int(h/64) < len(s) && s[h/64]&(1<<(h%64)) != 0 }
