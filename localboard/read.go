package localboard

import (
	"context"
	"iter"
	"time"
	"unsafe"

	"rankcache"
)

// Progress returns how far the board has come, unpublished changes included.
func (b *Board) Progress() rankcache.Progress {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.progress()
}

// Score returns the member's score, unpublished changes included, and its highest seq. Not ok: memberSeq is that of its
// removal, or up to which it may have been removed.
func (b *Board) Score(member string) (score float64, memberSeq uint64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.members.find(member)
	if m.record == nil {
		return 0, b.forgottenSeq, false
	}
	if score = b.score(m); isAbsent(score) {
		return 0, m.seq, false
	}
	return score, m.seq, true
}

// Data returns what the member has beside its score, unpublished changes included, and the seq as Score does.
func (b *Board) Data(member string) (data string, memberSeq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.members.find(member); m.record != nil {
		return b.data.Of(member), m.seq
	}
	return "", b.forgottenSeq
}

// State returns the state that the board has, unpublished changes included. The sum is known while Apply is strict.
func (b *Board) State() rankcache.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state()
}

// SumAt returns the sum at a seq of a run: known for the last ten seconds and at least 1,024 updates.
func (b *Board) SumAt(run, seq uint64) (sum uint64, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if run != b.run || !b.strict {
		return 0, false
	}
	return b.ring.at(seq)
}

// MarkCurrent records that the copy equalled the origin at t; an earlier time is ignored. It takes no lock.
func (b *Board) MarkCurrent(t time.Time) {
	for {
		before := b.current.Load()
		if before != nil && !t.After(*before) || b.current.CompareAndSwap(before, &t) {
			return
		}
	}
}

// CurrentAt returns when the copy last equalled the origin, zero: never. It takes no lock.
func (b *Board) CurrentAt() time.Time {
	if t := b.current.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// Read implements [rankcache.Reader] for queries of this board, whose name is not looked at. Each answer is of the
// moment of one publication; before the first, and after Reset, its error is [rankcache.ErrNotKept]. It takes no lock,
// and allocates only rows beyond the first ones, up to [rankcache.MaxTop] or 64 after many publications between which
// no more were asked for: all who ask for those between two publications share them. The ids of rows keep memory of the
// board alive: clone those that are kept for long.
func (b *Board) Read(_ context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	for i := range qs {
		b.read(&qs[i], &as[i])
	}
}

func (b *Board) read(q *rankcache.Query, a *rankcache.Answer) {
	a.Begin(q, rankcache.SourceLocal, rankcache.Stamp{}, b.CurrentAt()) // the view is no older
	v := b.standings(a.Own, q)
	if v == nil {
		a.Fail(rankcache.ErrNotKept)
		return
	}
	v.answer(q, a)
	if at := b.primed.Load(); at != nil {
		a.Primed = v.state.Run == at.Run && v.state.Seq >= at.Seq
	}
}

// SetPrimed records whether the origin has the board marked as primed, at a state. Readers are told so from that state
// on: a copy that is behind may lack what the origin has. One goroutine may call it; it takes no lock.
func (b *Board) SetPrimed(primed bool, at rankcache.State) {
	old := b.primed.Load()
	switch {
	case !primed && old == nil, primed && old != nil && old.Run == at.Run && old.Seq <= at.Seq:
		return
	case primed:
		b.primed.Store(&at)
	default:
		b.primed.Store(nil)
	}
	b.notify()
}

// standings fills in rows, whose Member is set, and returns the view they are of; nil before the first.
func (b *Board) standings(rows []rankcache.Own, q *rankcache.Query) *view {
	for verify := false; ; {
		v := b.view.Load() // r1
		if v == nil || len(rows) == 0 {
			return v
		}
		if q.Scores != nil {
			v.place(rows, q)
			return v
		}
		v.lookup(rows, verify)                         // r2
		if over := v.overwritten.Load(); over != nil { // r3
			v.restore(rows, *over)  // r4
			if b.view.Load() != v { // r5
				continue
			}
		}
		if v.rank(rows, q.Order) {
			return v
		}
		verify = true // two ids have the same tag
	}
}

// Snapshot returns the whole board as last published, best first and in pieces, with the moment that it is of. One
// goroutine may iterate over it at any pace while the board changes; a piece is valid until the next one. Members with
// data are as [rankcache.JoinData] joins them. Before the first Publish there are no pieces.
func (b *Board) Snapshot() (rankcache.Stamp, iter.Seq[[]rankcache.Entry]) {
	v := b.view.Load()
	if v == nil {
		return rankcache.Stamp{}, func(func([]rankcache.Entry) bool) {}
	}
	return v.stamp(), v.pieces
}

// Bytes returns the board's heap, estimated, without what only slow readers still hold.
func (b *Board) Bytes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.members.bytes() + b.seqs.bytes() + b.orderIDs.bytes() + b.data.Bytes()
	n += cap(b.changes) * int(unsafe.Sizeof(change{}))
	if b.index != nil {
		n += b.index.bytes()
	}
	if v := b.view.Load(); v != nil {
		n += v.ownBytes()
		if b.freshStorage {
			n += v.members.bytes() + v.root.bytes()
		}
	}
	return n
}
