package localboard

import (
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

// Score returns the member's score, unpublished changes included, and the highest
// seq applied to it. If the member is not on the board, ok is false and memberSeq
// is the seq of its removal; without a tombstone, the seq up to which it may have
// been removed.
func (b *Board) Score(member string) (score float64, memberSeq uint64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, r := b.members.find(member)
	if r == nil {
		return 0, b.forgottenSeq, false
	}
	if score = b.score(r); isAbsent(score) {
		return 0, r.seq, false
	}
	return score, r.seq, true
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

// MarkCurrent records that the copy was known to equal the origin at t. A time
// before the recorded one is ignored. It takes no lock.
func (b *Board) MarkCurrent(t time.Time) {
	for {
		before := b.current.Load()
		if before != nil && !t.After(*before) || b.current.CompareAndSwap(before, &t) {
			return
		}
	}
}

// CurrentAt returns when the copy was last known to equal the origin, and the
// zero time if it never was. It takes no lock.
func (b *Board) CurrentAt() time.Time {
	if t := b.current.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// Top returns the first rows as last published, nil before the first Publish: up to
// [rankcache.MaxTop], or 64 after many publications between which Page was asked for no
// more. All who ask between two publications get the same; the first makes it, for the
// others it costs two atomic loads.
func (b *Board) Top() *rankcache.Top {
	if v := b.view.Load(); v != nil {
		if t := v.made.Load(); t != nil {
			return t
		}
	}
	v, pinned := b.view.pin()
	if v == nil {
		return nil
	}
	defer pinned.release()
	return v.top()
}

// Stamp returns the state as last published; one of no time before the first Publish.
func (b *Board) Stamp() rankcache.Stamp {
	if v := b.view.Load(); v != nil {
		return v.stamp()
	}
	return rankcache.Stamp{}
}

// Page returns at most limit rows from the 0-based index start on, in the given
// direction; past the end, none. Its entries may be shared with other readers and
// must not be changed. Their ids keep memory of the board alive: clone those that
// are kept for long.
func (b *Board) Page(start, limit int, direction rankcache.Direction) rankcache.Page {
	v, pinned := b.view.pin()
	if v == nil {
		return rankcache.Page{Start: start}
	}
	defer pinned.release()
	return v.page(start, limit, direction)
}

// Standings appends the standing of each of members to dst, all of one moment, and
// returns the published head of that moment, nil before the first Publish. The appended
// standings hold the strings of members.
// It allocates only if dst has to grow.
func (b *Board) Standings(dst []rankcache.Standing, members []string, direction rankcache.Direction) ([]rankcache.Standing, *rankcache.Top) {
	from := len(dst)
	for _, m := range members {
		dst = append(dst, rankcache.Standing{Member: m})
	}
	v, pinned := b.standings(dst[from:], direction)
	if v == nil {
		return dst, nil
	}
	top := v.top()
	pinned.release()
	return dst, top
}

// AppendPage is [Board.Page] with the rows appended to dst, which stays the caller's. Nothing
// is made that other readers may share: it is for pages that are read once, and makes no
// garbage if dst has room. Like those of Page the ids keep memory of the board alive.
func (b *Board) AppendPage(dst []rankcache.Entry, start, limit int, direction rankcache.Direction) rankcache.Page {
	v, pinned := b.view.pin()
	if v == nil {
		return rankcache.Page{Start: start, Entries: dst}
	}
	defer pinned.release()
	return v.appendPage(dst, start, limit, direction)
}

// standings fills in score and rank of rows, whose Member is set. It returns the
// view that they were read from, pinned; nil before the first. See Publish for r1
// to r5.
func (b *Board) standings(rows []rankcache.Standing, direction rankcache.Direction) (*view, pin) {
	for verify := false; ; {
		v, pinned := b.view.pin() // r1
		if v == nil {
			return nil, pinned
		}
		v.lookup(rows, verify)                         // r2
		if over := v.overwritten.Load(); over != nil { // r3
			v.restore(rows, *over)  // r4
			if b.view.Load() != v { // r5
				pinned.release()
				continue
			}
		}
		if v.rank(rows, direction) {
			return v, pinned
		}
		pinned.release()
		verify = true // two ids have the same tag
	}
}

// WholePage answers q, all of one moment, and returns the published head of that moment;
// nil before the first Publish. The rows are as those of [Board.Page]. q.Board is not
// looked at.
func (b *Board) WholePage(q rankcache.PageQuery) (rankcache.WholePage, *rankcache.Top) {
	own := [1]rankcache.Standing{{Member: q.Member}}
	v, pinned := b.standings(own[:], q.Order)
	if v == nil {
		return rankcache.WholePage{}, nil
	}
	defer pinned.release()
	w := rankcache.WholePage{Page: v.page(q.Start, q.Limit, q.Order), Own: v.surroundings(own[0], &q)}
	if q.Ranked() && len(w.Entries) > 0 {
		w.Ahead = v.ahead(w.Entries[0].Score, &q)
	}
	return w, v.top()
}

// RankedStandings is [Board.Standings] in the direction of q, with what is ahead of each
// member, nothing for one that is not on the board. Members have unknown [rankcache.Ahead]
// Scores where too many are ahead.
func (b *Board) RankedStandings(q rankcache.PageQuery, dst []rankcache.Standing, members []string) ([]rankcache.Standing, []rankcache.Ahead, rankcache.Stamp) {
	from := len(dst)
	for _, m := range members {
		dst = append(dst, rankcache.Standing{Member: m})
	}
	v, pinned := b.standings(dst[from:], q.Order)
	defer pinned.release()
	if v == nil {
		return dst, make([]rankcache.Ahead, len(members)), rankcache.Stamp{}
	}
	return dst, v.aheadOfAll(dst[from:], &q), v.stamp()
}

// Around returns the member's rank, and the page of it with at most n neighbours
// on either side, all of one moment. If the member is not on the board, ok is
// false and only the page's stamp is set.
func (b *Board) Around(member string, n int, direction rankcache.Direction) (page rankcache.Page, rank int, ok bool) {
	me := [1]rankcache.Standing{{Member: member}}
	v, pinned := b.standings(me[:], direction)
	if v == nil {
		return page, 0, false
	}
	defer pinned.release()
	rank = me[0].Rank
	if rank == 0 {
		return rankcache.Page{Stamp: v.stamp()}, 0, false
	}
	n = min(n, v.rows)
	start := max(0, rank-1-n)
	return v.page(start, rank+n-start, direction), rank, true
}

// Snapshot returns the whole board as last published, best first and in pieces,
// with the moment that it is of. One goroutine may iterate over it at any pace
// while the board changes; a piece is valid until the next one. Before the first
// Publish there are no pieces.
func (b *Board) Snapshot() (rankcache.Stamp, iter.Seq[[]rankcache.Entry]) {
	v, pinned := b.view.pin()
	if v == nil {
		return rankcache.Stamp{}, func(func([]rankcache.Entry) bool) {}
	}
	defer pinned.release()
	v.pins.permanent.Store(true) // the end of the iteration is not known
	return v.stamp(), v.pieces
}

// Bytes returns how much heap the board holds, estimated from its structure.
// Memory that only slow readers still hold is not counted.
func (b *Board) Bytes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.members.bytes() + b.seqs.bytes() + b.orderIDs.bytes()
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

// ByScore returns how many members have a score from lo to hi, both included, and of
// these at most limit rows from the 0-based offset on, in the given direction; all of
// one moment. The rows are as those of [Board.Page].
func (b *Board) ByScore(lo, hi float64, offset, limit int, direction rankcache.Direction) (page rankcache.Page, total int) {
	v, pinned := b.view.pin()
	if v == nil {
		return rankcache.Page{}, 0
	}
	defer pinned.release()
	first := v.rowsAbove(hi, true)
	total = max(v.rowsAbove(lo, false)-first, 0)
	n := min(limit, total-offset)
	if offset < 0 || n <= 0 {
		return rankcache.Page{Stamp: v.stamp()}, total
	}
	if direction == rankcache.Ascending {
		first = v.rows - first - total
	}
	return v.page(first+offset, n, direction), total
}
