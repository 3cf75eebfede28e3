package localboard

import (
	"slices"
	"time"

	"rankcache/internal/yield"
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
func (s *writerState) updateIndex() {
	switch {
	case s.index == nil:
		s.members.prefix, s.liveAtCompaction = s.members.commonPrefix(), s.live
		s.index = build(&s.members, s.liveRows(), 0, &s.pass)
	case len(s.changes) > s.index.rows/mergeShare:
		s.index = s.index.merged(&s.members, s.changedHandles(), s.changedRows(), &s.pass)
	default:
		for y, i := newYielder(&s.pass, len(s.changes)), 0; i < len(s.changes); i++ {
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

// liveRows returns a row for every member on the board.
func (s *writerState) liveRows() (rows rowPieces) {
	left := s.live
	for h, r := range s.members.all {
		s.pass.Done(rowSteps)
		if score := s.members.published(r); !isAbsent(score) {
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
	pass   *yield.Steps
	every  int // changes between two yields
	budget time.Duration
}

func newYielder(pass *yield.Steps, changes int) yielder {
	return yielder{pass, max(minPiece, changes/maxPieces), yieldBudget}
}

// beforeChange is called before the i-th change.
func (y *yielder) beforeChange(i int) {
	if i == 0 || i%y.every != 0 || y.budget <= 0 {
		return
	}
	start := time.Now()
	y.pass.Now()
	y.budget -= time.Since(start)
}

// A pass over a whole board yields after passSteps, some 0.1 to 0.2 ms. Go takes a core from
// a goroutine after 10 ms only, and readers of other boards would wait for so long. A
// comparison in a sort is one step; a row of a pass, hardly ever in the cache, is rowSteps.
const passSteps, rowSteps = 4096, 4

// bitset is a set of handles.
type bitset []uint64

func newBitset(end uint32) bitset { return make(bitset, end/64+1) }

func (s bitset) put(h uint32) { s[h/64] |= 1 << (h % 64) }

func (s bitset) has(h uint32) bool { return s[h/64]&(1<<(h%64)) != 0 }
