package localboard

import "slices"

// mergeShare decides how a publication updates the index: with more than rows /
// mergeShare changes it is rebuilt in one pass, else row by row. Of boards of 3,000 to
// 1,000,000 members whose changes are spread evenly a pass costs as much as a change of a 20th
// to a 40th of them, and of an 8th or more of smaller ones; where some members change more
// often than others, rows stay cheaper up to more changes.
const mergeShare = 16

// maxSpareChanges is for how many changes a list is made when it is empty.
const maxSpareChanges = 4096

// change is a member's new score, not yet published.
type change struct {
	handle    uint32
	tag       uint32
	idKey     uint64  // the member's, taken while its id is in the cache
	old, next float64 // old is the score published before
}

// updateIndex brings the index up to the changes.
func (s *writerState) updateIndex() {
	switch {
	case s.index == nil:
		s.members.fit()
		s.members.prefix, s.liveAtCompaction = s.members.commonPrefix(), s.live
		s.index = build(&s.members, s.liveRows(), 0)
	case len(s.changes) > s.index.rows/mergeShare:
		s.index = s.index.merged(&s.members, s.changedHandles(), s.changedRows())
	default:
		for i := range s.changes {
			s.updateRow(&s.changes[i])
		}
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

// liveRows returns a row for every member on the board.
func (s *writerState) liveRows() (rows rowPieces) {
	left := s.live
	for h, r := range s.members.all {
		if score := s.members.of(h, r).published(); !isAbsent(score) {
			rows.add(newRow(score, s.members.idKey(r.id()), h), left)
			left--
		}
	}
	return rows
}

// changedHandles returns the members that have a change.
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

// storeScores writes the new scores to the table. It loads a batch of its entries
// first, so that their cache misses overlap.
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

// bitset is a set of handles.
type bitset []uint64

func newBitset(end uint32) bitset { return make(bitset, end/64+1) }

func (s bitset) put(h uint32) { s[h/64] |= 1 << (h % 64) }

func (s bitset) has(h uint32) bool { return s[h/64]&(1<<(h%64)) != 0 }
