package localboard

import (
	"math"
	"slices"
	"time"

	"rankcache"
	"rankcache/wire"
)

// proof is how a board is known to equal Redis: its checksum, kept with each change
// once it was made, and the sums after the latest updates.
type proof struct {
	run uint64 // of the updates that the board has
	sum uint64
	// summedTo is the handle up to which members are in sum; allHandles once it has
	// all of them.
	summedTo uint32
	// strict is set while each update has to be the next one and to give the sum that
	// it carries.
	strict bool
	ring   sumRing
}

const (
	allHandles = math.MaxUint32
	// sumPiece is how many members are added up with the lock held: half a millisecond.
	sumPiece = 4096
)

// share returns a member's share of the sum, 0 if it is not on the board.
func share(id string, score float64) uint64 {
	if isAbsent(score) {
		return 0
	}
	return wire.Hash(id, score)
}

// sumAfter returns the sum after a member's score changes.
func (s *writerState) sumAfter(handle uint32, r *record, score float64) uint64 {
	if handle >= s.summedTo {
		return s.sum
	}
	id := r.id()
	return (s.sum - share(id, s.score(r)) + share(id, score)) & wire.SumMask
}

// sumMore adds up the next n members. It returns true once all are in the sum.
func (s *writerState) sumMore(n int) (done bool) {
	if s.summedTo == allHandles {
		return true
	}
	next := uint32(allHandles)
	s.members.from(s.summedTo, func(h uint32, r *record) bool {
		if n--; n < 0 {
			next = h
			return false
		}
		s.sum = (s.sum + share(r.id(), s.score(r))) & wire.SumMask
		return true
	})
	s.summedTo = next
	return next == allHandles
}

// renumberSum follows a compaction, which gives members new handles: a sum that was
// not complete begins again.
func (s *writerState) renumberSum() {
	if s.summedTo != allHandles {
		s.summedTo, s.sum = 0, 0
	}
}

// applyStrict applies u if it is the next update and gives the sum that it carries.
// An earlier one must be that of the ring.
func (s *writerState) applyStrict(u *wire.Update, tag uint32) outcome {
	if u.Seq != 0 && u.Seq <= s.seqs.contiguous {
		if sum, known := s.ring.at(u.Seq); known && (!u.HasSum || u.Sum != sum) {
			return refuted
		}
		return duplicate
	}
	if u.Seq != s.seqs.contiguous+1 || !u.HasSum {
		return refuted
	}
	h, r := s.members.findByTag(tag, u.Member)
	if r == nil {
		if h, r = s.addMember(u.Member); r == nil {
			return refuted
		}
	}
	score := scoreAfter(s.score(r), u)
	sum := s.sumAfter(h, r, score)
	if sum != u.Sum {
		return refuted
	}
	s.seqs.add(u.Seq)
	r.seq, s.sum = u.Seq, sum
	s.storeScore(h, r, score)
	s.ring.add(sum)
	return applied
}

func (s *writerState) state() rankcache.State {
	p := s.progress()
	state := rankcache.State{Run: s.run, Seq: p.Applied()}
	if s.strict {
		state.Sum, state.HasSum = s.sum, true
	}
	return state
}

// Sum returns the checksum over all members, unpublished changes included. The first
// call since [New] or Reset adds them up, in pieces, so that other methods wait for
// half a millisecond at most; from then on each change keeps the sum.
func (b *Board) Sum() uint64 {
	for {
		b.mu.Lock()
		done, sum, yield := b.sumMore(sumPiece), b.sum, b.yield
		b.mu.Unlock()
		if done {
			return sum
		}
		if yield != nil {
			yield()
		}
	}
}

// SetRun records of which run the board's updates are.
func (b *Board) SetRun(run uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.run = run
}

// Prove compares the board with the state that Redis had. If run and sum are the same
// and the board has no update beyond the state's seq, it is equal to Redis there:
// holes up to the seq are accepted, Prove returns true, and from now on Apply is
// strict. Otherwise nothing changes.
func (b *Board) Prove(state rankcache.State) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !state.HasSum || b.run != state.Run || b.summedTo != allHandles || b.sum != state.Sum || b.seqs.highest > state.Seq {
		return false
	}
	b.seqs.acceptTo(state.Seq)
	b.strict = true
	b.ring = newSumRing(state.Seq, state.Sum)
	return true
}

// Relax ends the strict mode that Prove began: updates are applied in any order, unproved.
func (b *Board) Relax() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.strict, b.ring = false, sumRing{}
}

// State returns the state that the board has, unpublished changes included. The sum
// is known while Apply is strict.
func (b *Board) State() rankcache.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state()
}

// SumAt returns the sum that the board had at a seq of a run. It is known for the
// latest updates only: those of the last ten seconds, and at least 1,024.
func (b *Board) SumAt(run, seq uint64) (sum uint64, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if run != b.run || !b.strict {
		return 0, false
	}
	return b.ring.at(seq)
}

const (
	// ringSpan is for how long a ring remembers sums, and ringLen how many at least.
	ringSpan = 10 * time.Second
	ringLen  = 1024
	// ringMarkEvery is how exactly it knows when they were.
	ringMarkEvery = 100 * time.Millisecond
)

// sumRing has the sums after the latest updates. It is empty until made.
type sumRing struct {
	first uint64 // seq of the first sum
	sums  []uint64
	marks []ringMark // oldest first
}

// ringMark tells that the sum at a seq was the newest at a time.
type ringMark struct {
	seq uint64
	at  time.Time
}

func newSumRing(seq, sum uint64) sumRing { return sumRing{first: seq, sums: []uint64{sum}} }

func (r *sumRing) at(seq uint64) (sum uint64, known bool) {
	if seq < r.first || seq-r.first >= uint64(len(r.sums)) {
		return 0, false
	}
	return r.sums[seq-r.first], true
}

// add adds the sum after the next update.
func (r *sumRing) add(sum uint64) { r.sums = append(r.sums, sum) }

// forget drops sums older than ringSpan, beyond the last ringLen.
func (r *sumRing) forget(now time.Time) {
	if len(r.sums) <= ringLen {
		r.marks = r.marks[:0]
		return
	}
	last := r.first + uint64(len(r.sums)) - 1
	if n := len(r.marks); n == 0 || now.Sub(r.marks[n-1].at) >= ringMarkEvery {
		r.marks = append(r.marks, ringMark{last, now})
	}
	old := 0
	for old < len(r.marks) && now.Sub(r.marks[old].at) > ringSpan {
		old++
	}
	if old == 0 {
		return
	}
	if keep := min(r.marks[old-1].seq, last+1-ringLen); keep > r.first {
		r.sums, r.first = r.sums[keep-r.first:], keep
	}
	r.marks = slices.Delete(r.marks, 0, old)
}
