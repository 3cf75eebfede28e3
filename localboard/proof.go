package localboard

import (
	"math"
	"slices"
	"time"

	"rankcache"
	"rankcache/wire"
)

// proof is how a board is known to equal Redis: its checksum, and the sums after the latest updates.
type proof struct {
	run      uint64 // of the updates that the board has
	sum      uint64
	summedTo uint32 // the handle up to which members are in sum; allHandles once it has all of them
	strict   bool   // set while each update has to be the next one and to give the sum that it carries
	ring     sumRing
	data     *rankcache.Data // what members have beside their scores, unpublished changes included
}

const (
	allHandles = math.MaxUint32
	sumPiece   = 1024 // how many members are added up with the lock held: 0.2 ms
)

// share returns a member's share of the sum, 0 if absent. id has its data, as [rankcache.JoinData] joins it.
func share(id string, score float64) uint64 {
	if isAbsent(score) {
		return 0
	}
	return wire.Hash(id, score)
}

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
	p.summedTo = m.some(p.summedTo, n, func(h uint32, r *record) {
		id := r.id()
		p.sum = (p.sum + share(rankcache.JoinData(id, p.data.Of(id)), scoreOf(m.of(h, r)))) & wire.SumMask
	})
	return p.summedTo == allHandles
}

// renumbered follows a compaction, which gives members new handles: a sum that was not complete begins again.
func (p *proof) renumbered() {
	if p.summedTo != allHandles {
		p.summedTo, p.sum = 0, 0
	}
}

const (
	ringSpan      = 10 * time.Second // for how long a ring remembers sums, and ringLen how many at least
	ringLen       = 1024
	ringMarkEvery = 100 * time.Millisecond // how exactly it knows when they were
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
