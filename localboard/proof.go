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
	// data is what members have beside their scores, unpublished changes included.
	data *rankcache.Data
}

const (
	allHandles = math.MaxUint32
	// sumPiece is how many members are added up with the lock held: 0.2 ms.
	sumPiece = 1024
)

// share returns a member's share of the sum, 0 if it is not on the board. id has its data, as [rankcache.JoinData] joins it.
func share(id string, score float64) uint64 {
	if isAbsent(score) {
		return 0
	}
	return wire.Hash(id, score)
}

// sumAfter returns the sum after a member's score changes, and its data.
func (p *proof) sumAfter(m member, before, score float64, data dataChange) uint64 {
	if m.handle >= p.summedTo {
		return p.sum
	}
	id := m.id()
	return (p.sum - share(rankcache.JoinData(id, data.before), before) + share(rankcache.JoinData(id, data.after), score)) & wire.SumMask
}

// dataChange is what a member has beside its score before and after a change; "": nothing.
type dataChange struct{ before, after string }

// dataTo returns the change of a member's data to that which it has after its score has become another.
func (p *proof) dataTo(id, after string, score float64) dataChange {
	if isAbsent(score) {
		after = ""
	}
	return dataChange{p.data.Of(id), after}
}

func (p *proof) storeData(id string, c dataChange) {
	if c.before != c.after {
		p.data = p.data.With(id, c.after)
	}
}

// sumMore adds up the next n members. It returns true once all are in the sum.
func (p *proof) sumMore(m *members, scoreOf func(member) float64, n int) (done bool) {
	if p.summedTo == allHandles {
		return true
	}
	next := uint32(allHandles)
	m.from(p.summedTo, func(h uint32, r *record) bool {
		if n--; n < 0 {
			next = h
			return false
		}
		id := r.id()
		p.sum = (p.sum + share(rankcache.JoinData(id, p.data.Of(id)), scoreOf(m.of(h, r)))) & wire.SumMask
		return true
	})
	p.summedTo = next
	return next == allHandles
}

// renumbered follows a compaction, which gives members new handles: a sum that was
// not complete begins again.
func (p *proof) renumbered() {
	if p.summedTo != allHandles {
		p.summedTo, p.sum = 0, 0
	}
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
