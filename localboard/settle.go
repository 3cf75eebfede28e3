package localboard

import (
	"rankcache/wire"
)

// Settle counts all updates up to seq as seen, though some may never come: a
// compacted log has holes. One that comes nevertheless is still applied.
func (b *Board) Settle(seq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seq > b.seen.contiguous {
		b.seen.settle(seq)
		b.settled = seq
	}
}

// late applies an update whose seq counts as seen. Up to settled it may never have
// come, because its producer crashed between Redis and the log. Its member
// decides: an update above the member's own seq is news, every other one is not.
// A member that is not known may have been removed later, and forgotten.
func (b *Board) late(u *wire.Update) outcome {
	if u.Seq > b.settled {
		return duplicate
	}
	h, r := b.members.find(u.Member)
	switch {
	case r != nil && u.Seq <= r.seq, r == nil && u.Seq <= b.forgotten:
		return duplicate
	case r == nil:
		if h, r = b.member(u.Member); r == nil {
			return stale
		}
	}
	return b.put(h, r, u)
}
