package localboard

import (
	"slices"
	"time"
)

// mergeShare decides how a publication updates the index: with more than rows /
// mergeShare changes it is rebuilt in one pass, else row by row. Measured at
// 210,000 rows, a pass costs as much as some 2,000 changes.
const mergeShare = 64

// change is a member's new score, not yet published.
type change struct {
	handle    uint32
	idKey     uint64  // the member's, taken while its id is in the cache
	old, next float64 // old is the score published before
}

// updateIndex brings the index up to the changes.
func (s *writerState) updateIndex(yield func()) {
	switch {
	case s.index == nil:
		s.members.prefix, s.liveAtCompaction = s.members.commonPrefix(), s.live
		s.index = s.build(yield)
	case len(s.changes) > s.index.rows/mergeShare:
		s.index = s.index.merged(&s.members, s.changedHandles(), s.changedRows(), &passYielder{yield: yield})
	default:
		for y, i := newYielder(yield, len(s.changes)), 0; i < len(s.changes); i++ {
			y.beforeChange(i)
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

// build returns the index of all members on the board.
func (s *writerState) build(yield func()) *index {
	p := &passYielder{yield: yield}
	return build(&s.members, s.liveRows(p), 0, p)
}

// liveRows returns a row for every member on the board, unsorted.
func (s *writerState) liveRows(p *passYielder) []row {
	rows := make([]row, 0, s.live)
	for h, r := range s.members.all {
		p.step()
		if score := s.members.published(r); !isAbsent(score) {
			rows = append(rows, newRow(score, s.members.idKey(r.id()), h))
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

// storeScores writes the new scores to the table. It loads a batch of scores
// first, so that their cache misses overlap.
func (s *writerState) storeScores(changes []change) {
	for batch := range slices.Chunk(changes, prefetchBatch) {
		for i := range batch {
			s.members.published(s.members.at(batch[i].handle))
		}
		for i := range batch {
			s.members.publish(s.members.at(batch[i].handle), batch[i].next)
		}
	}
}

func (s *writerState) resetChanges(changes []change) {
	for i := range changes {
		s.members.at(changes[i].handle).changeNo.Store(0)
	}
	s.freshStorage = false
	if len(changes) > 0 { // else no reader refers to the list
		s.changes = s.index.free.takeChangeList(len(changes))
	}
}

// A publication takes longer than a read: some 100 µs for 50 changes, since few of
// the rows are in the cache. The writer yields between pieces of it, so that readers
// with no other core need not wait for the whole. Beside 5,000 updates a second,
// the 99th percentile of a top was 1.2 to 1.7 times that of a fixed body without
// yielding, and 0.8 to 1.4 with it.
const (
	minPiece  = 8 // changes, some 10 µs
	maxPieces = 16
	// yieldBudget is how long one publication yields in all before it runs to its
	// end: under constant load, each yield waits for every ready reader.
	yieldBudget = 2 * time.Millisecond
)

// yielder yields during one publication.
type yielder struct {
	yield  func() // may be nil
	every  int    // changes between two yields
	budget time.Duration
}

func newYielder(yield func(), changes int) yielder {
	return yielder{yield, max(minPiece, changes/maxPieces), yieldBudget}
}

// beforeChange is called before the i-th change.
func (y *yielder) beforeChange(i int) {
	if y.yield == nil || i == 0 || i%y.every != 0 || y.budget <= 0 {
		return
	}
	start := time.Now()
	y.yield()
	y.budget -= time.Since(start)
}

// passSteps is how many rows a pass over a whole board works on between two yields, or how
// many it compares: some 0.2 ms.
const passSteps = 4096

// passYielder yields during a pass over a whole board. Go takes a core from a goroutine after
// 10 ms only, and readers of other boards would wait for so long.
type passYielder struct {
	yield func() // may be nil
	steps int    // since the last yield
}

// step is called for each row.
func (p *passYielder) step() {
	if p.steps++; p.steps < passSteps || p.yield == nil {
		return
	}
	p.steps = 0
	p.yield()
}

// bitset is a set of handles.
type bitset []uint64

func newBitset(end uint32) bitset { return make(bitset, end/64+1) }

func (s bitset) put(h uint32) { s[h/64] |= 1 << (h % 64) }

func (s bitset) has(h uint32) bool { return s[h/64]&(1<<(h%64)) != 0 }
