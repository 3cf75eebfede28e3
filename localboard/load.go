package localboard

import (
	"errors"
	"fmt"

	"rankcache"
)

// ErrOldSnapshot says that a snapshot is older than another that was loaded, or
// than a removal that the board has already forgotten, so that loading it could
// bring a member back. Read a new one.
var ErrOldSnapshot = errors.New("snapshot is older than what the board has forgotten")

// Load makes the board what a snapshot of the origin says, which was read after
// the origin's seq was seq. A member with an own seq beyond that keeps its
// state, its removal too; every other takes the snapshot's, or vanishes. All
// updates up to seq then count as seen. Nothing of es is kept.
//
// The error wraps ErrOldSnapshot, or names the entry that no board can hold; the
// board then is as it was.
func (b *Board) Load(seq uint64, es []rankcache.Entry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seq < b.forgotten {
		return fmt.Errorf("board %s: %w: read it after seq %d, not %d", b.id, ErrOldSnapshot, b.forgotten, seq)
	}
	for i := range es {
		if err := b.check(&es[i]); err != nil {
			return fmt.Errorf("board %s: snapshot: %w", b.id, err)
		}
	}
	b.vanish(seq, b.take(seq, es))
	b.seen.settle(seq)
	b.forgotten = max(b.forgotten, seq)
	b.tidy()
	return nil
}

func (b *Board) check(e *rankcache.Entry) error {
	if !b.members.fits(e.Member) {
		return fmt.Errorf("member %.40q has %d bytes, want at most %d", e.Member, len(e.Member), maxMember)
	}
	if isAbsent(e.Score) {
		return fmt.Errorf("member %.40q: score is not a number", e.Member)
	}
	return nil
}

// take gives the members of a snapshot their scores and returns their handles.
func (b *Board) take(seq uint64, es []rankcache.Entry) []uint32 {
	taken := make([]uint32, 0, len(es))
	for i := range es {
		if h, r := b.member(es[i].Member); r != nil {
			taken = append(taken, h)
			b.settle(h, r, seq, es[i].Score+0)
		}
	}
	return taken
}

// vanish removes the members that were not taken from a snapshot.
func (b *Board) vanish(seq uint64, taken []uint32) {
	stay := newBitset(b.members.limit)
	for _, h := range taken {
		stay.put(h)
	}
	for h, r := range b.members.all {
		if !stay.has(h) {
			b.settle(h, r, seq, absent)
		}
	}
}

// settle gives a member the state that it had at seq, unless it has a later one.
func (b *Board) settle(h uint32, r *record, seq uint64, score float64) {
	if r.seq > seq {
		return
	}
	r.seq = seq
	if before := b.score(r); before != score && !(isAbsent(before) && isAbsent(score)) {
		b.change(h, r, score)
	}
}
