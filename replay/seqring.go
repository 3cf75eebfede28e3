package replay

import (
	"hash/maphash"
	"math"

	"rankcache/wire"
)

// ringLen is how many of its latest seqs a board remembers, 16 bytes each.
const ringLen = 1024

// seqRing remembers which update the latest seqs of a board stood for. A seq that
// comes again as another update shows that Redis has lost writes, or the board, and
// gives its seqs out again; a producer's repeat is the same update. A check costs a
// look at one slot and two short hashes. The replica owns it: its lock guards it.
// The zero value is empty.
type seqRing struct {
	seed  maphash.Seed
	slots []ringSlot // by seq % ringLen; nil before the first
}

type ringSlot struct{ seq, hash uint64 }

// Add remembers u and returns whether its seq stood for another update before.
func (r *seqRing) Add(u *wire.Update) (reused bool) {
	if u.Seq == 0 {
		return false
	}
	if r.slots == nil {
		r.seed, r.slots = maphash.MakeSeed(), make([]ringSlot, ringLen)
	}
	s := &r.slots[u.Seq%ringLen]
	if s.seq > u.Seq {
		return false // no longer remembered
	}
	h := r.hash(u)
	reused = s.seq == u.Seq && s.hash != h
	*s = ringSlot{u.Seq, h}
	return reused
}

func (r *seqRing) hash(u *wire.Update) uint64 {
	const odd = 0x9e3779b97f4a7c15
	n := maphash.String(r.seed, u.OrderID)*odd ^ maphash.String(r.seed, u.Member)
	if u.Op == wire.OpDelete {
		return ^n
	}
	return n*odd ^ math.Float64bits(u.Score+0)
}

// Clear forgets everything.
func (r *seqRing) Clear() { clear(r.slots) }
