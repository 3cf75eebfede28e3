package replay

import (
	"hash/maphash"
	"math"

	"rankcache/wire"
)

// historyLen is how many of its latest seqs a board remembers, 16 bytes each.
const historyLen = 1024

// history remembers what the latest seqs of a board stood for. A seq that comes
// again as something else shows that Redis has lost writes, or the board, and
// counts again; each repeat of a producer is the same update. It costs one look
// at a slot and two short hashes per update. The zero value is empty.
type history struct {
	seed  maphash.Seed
	slots []slot // by seq % historyLen; nil before the first
}

type slot struct{ seq, sum uint64 }

// clashes notes u and says whether its seq stood for something else before.
func (h *history) clashes(u *wire.Update) bool {
	if u.Seq == 0 {
		return false
	}
	if h.slots == nil {
		h.seed, h.slots = maphash.MakeSeed(), make([]slot, historyLen)
	}
	s := &h.slots[u.Seq%historyLen]
	if s.seq > u.Seq {
		return false // no longer remembered
	}
	sum := h.sum(u)
	clash := s.seq == u.Seq && s.sum != sum
	*s = slot{u.Seq, sum}
	return clash
}

func (h *history) sum(u *wire.Update) uint64 {
	const odd = 0x9e3779b97f4a7c15
	n := maphash.String(h.seed, u.OrderID)*odd ^ maphash.String(h.seed, u.Member)
	if u.Op == wire.OpDelete {
		return ^n
	}
	return n*odd ^ math.Float64bits(u.Score+0)
}

// clear forgets everything.
func (h *history) clear() { clear(h.slots) }
