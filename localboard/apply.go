package localboard

import "rankcache"

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
func (b *Board) Apply(us []rankcache.Update) rankcache.Applied {
	b.mu.Lock()
	defer b.mu.Unlock()
	var n [stale + 1]int
	for i := range us {
		n[b.apply(&us[i])]++
	}
	b.tidy()
	return rankcache.Applied{Applied: n[applied], Duplicate: n[duplicate], Stale: n[stale]}
}

// apply follows the apply rule: with a seq, a member takes the state of its
// highest; without one, each order number counts once.
func (b *Board) apply(u *rankcache.Update) outcome {
	if u.Seq == 0 {
		if !b.orders.add(u.Order) {
			return duplicate
		}
	} else if !b.seen.add(u.Seq) {
		return duplicate
	}
	h, ok := b.handle(u.Member)
	if !ok {
		return stale
	}
	s := b.members.slot(h)
	if u.Seq != 0 && u.Seq < s.seq {
		return stale
	}
	score := after(b.score(s), u)
	if isAbsent(score) && u.Op != rankcache.OpDelete {
		return stale
	}
	s.seq = max(s.seq, u.Seq)
	b.change(h, s, score)
	return applied
}

// after returns a member's score after u; absent if u removes it. An update
// with a seq says itself what it is.
func after(before float64, u *rankcache.Update) float64 {
	switch {
	case u.Op == rankcache.OpDelete:
		return absent
	case u.Seq != 0 || u.Op == rankcache.OpSet:
		return u.Score + 0 // makes -0 a 0, as it prints
	case isAbsent(before):
		return u.Delta + 0
	default:
		return before + u.Delta
	}
}

// handle returns the member's handle, a new one if it is not known; false if it
// cannot be held.
func (b *Board) handle(member string) (uint32, bool) {
	if h, ok := b.members.find(member); ok {
		return h, true
	}
	if !b.members.ids.fits(member) {
		return 0, false
	}
	return b.members.add(member), true
}

// score returns the score in s as the writer knows it.
func (b *Board) score(s *slot) float64 {
	if n := s.change.Load(); n > 0 {
		return b.changes[n-1].next
	}
	return s.published()
}

// change gives a member a score. Once there is an order, readers may be in the
// slot, and the score waits for Publish.
func (b *Board) change(handle uint32, s *slot, score float64) {
	before := b.score(s)
	b.live += on(score) - on(before)
	switch n := s.change.Load(); {
	case b.order == nil:
		s.publish(score)
	case n > 0:
		b.changes[n-1].next = score
	default:
		b.changes = append(b.changes, change{handle, before, score})
		s.change.Store(uint32(len(b.changes)))
	}
}

// on counts a member with this score: 1 if it is on the board.
func on(score float64) int {
	if isAbsent(score) {
		return 0
	}
	return 1
}
