package localboard

import (
	"slices"

	"rankcache"
	"rankcache/wire"
)

// outcome is what became of one update.
type outcome uint8

const (
	applied outcome = iota
	duplicate
	stale
)

// Apply applies a batch of the board's updates and counts what became of them.
// Readers see it after the next Publish. Nothing of us is kept. An update that
// no board can hold (a score that is no number, an id of 64 KiB) changes nothing
// and counts as stale.
func (b *Board) Apply(us []wire.Update) rankcache.ApplyResult {
	b.mu.Lock()
	defer b.mu.Unlock()
	var n [stale + 1]int
	for batch := range slices.Chunk(us, fetchAhead) {
		tags := b.members.fetch(batch)
		for i := range batch {
			n[b.apply(&batch[i], tags[i])]++
		}
	}
	b.tidy()
	return rankcache.ApplyResult{Applied: n[applied], Duplicate: n[duplicate], Stale: n[stale]}
}

// apply follows the apply rule: with a seq, a member takes the state of its
// highest; without one, each order number counts once. tag is the member's.
func (b *Board) apply(u *wire.Update, tag uint32) outcome {
	if u.Seq == 0 {
		if !b.orders.add(u.OrderID) {
			return duplicate
		}
	} else if !b.seen.add(u.Seq) {
		return b.late(u)
	}
	h, r := b.members.findTagged(tag, u.Member)
	if r == nil {
		h, r = b.newcomer(u.Member)
	}
	if r == nil || u.Seq != 0 && u.Seq < r.seq {
		return stale
	}
	return b.put(h, r, u)
}

// put gives a member the state that u says.
func (b *Board) put(h uint32, r *record, u *wire.Update) outcome {
	score := after(b.score(r), u)
	if isAbsent(score) && u.Op != wire.OpDelete {
		return stale
	}
	r.seq = max(r.seq, u.Seq)
	b.change(h, r, score)
	return applied
}

// after returns a member's score after u; absent if u removes it. An update
// with a seq says itself what it is.
func after(before float64, u *wire.Update) float64 {
	switch {
	case u.Op == wire.OpDelete:
		return absent
	case u.Seq != 0 || u.Op == wire.OpSet:
		return u.Score + 0 // makes -0 a 0, as it prints
	case isAbsent(before):
		return u.Delta + 0
	default:
		return before + u.Delta
	}
}

// member returns the member's handle and record, a new one if it is not known;
// nil if it cannot be held.
func (b *Board) member(id string) (uint32, *record) {
	if h, r := b.members.find(id); r != nil {
		return h, r
	}
	return b.newcomer(id)
}

// newcomer returns a record for a member that is not known, nil if it cannot be
// held. It counts as removed up to the seq that is forgotten, since it may have been.
func (b *Board) newcomer(id string) (uint32, *record) {
	if !b.members.fits(id) {
		return 0, nil
	}
	h, r := b.members.add(id)
	r.seq = b.forgotten
	return h, r
}

// score returns the score of r as the writer knows it.
func (b *Board) score(r *record) float64 {
	if n := r.change.Load(); n > 0 {
		return b.changes[n-1].next
	}
	return b.members.published(r)
}

// change gives a member a score. Once there is an order, readers may be in the
// record, and the score waits for Publish.
func (b *Board) change(handle uint32, r *record, score float64) {
	before := b.score(r)
	b.live += on(score) - on(before)
	switch n := r.change.Load(); {
	case b.order == nil:
		b.members.publish(r, score)
	case n > 0:
		b.changes[n-1].next = score
	default:
		b.changes = append(b.changes, change{handle, b.members.key(r.name()), before, score})
		r.change.Store(uint32(len(b.changes)))
	}
}

// on counts a member with this score: 1 if it is on the board.
func on(score float64) int {
	if isAbsent(score) {
		return 0
	}
	return 1
}
