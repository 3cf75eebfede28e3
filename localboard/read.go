package localboard

import (
	"slices"

	"rankcache"
)

// Top returns the head of the board as last published, nil before the first
// Publish. It costs one atomic load.
func (b *Board) Top() *rankcache.Top {
	if v := b.view.Load(); v != nil {
		return v.top
	}
	return nil
}

// Page returns at most limit rows from the 0-based index start on, in the order
// asked for; past the end, none. Its entries may be shared with other readers.
// Their ids keep memory of the board: clone what is kept for long.
func (b *Board) Page(start, limit int, order rankcache.Direction) rankcache.Page {
	v, hold := b.hold()
	if v == nil {
		return rankcache.Page{Start: start}
	}
	defer hold.release()
	return v.page(start, limit, order)
}

// page cuts start and limit to what there is.
func (v *view) page(start, limit int, order rankcache.Direction) rankcache.Page {
	p := rankcache.Page{Stamp: v.stamp(), Start: start}
	n := min(limit, v.rows-start)
	if start < 0 || n <= 0 {
		return p
	}
	first := start // of the rows, best first
	if order == rankcache.Ascending {
		first = v.rows - start - n
	}
	if order == rankcache.Descending && start+n <= len(v.top.Entries) {
		p.Entries = v.top.Entries[start : start+n : start+n]
		return p
	}
	p.Entries = make([]rankcache.Entry, n)
	v.read(&v.members, p.Entries, first)
	if order == rankcache.Ascending {
		slices.Reverse(p.Entries)
	}
	return p
}

// Standings appends the standing of each of members to dst, all of one moment,
// and returns that moment. The appended standings hold the strings of members.
// It allocates only what dst has to grow.
func (b *Board) Standings(dst []rankcache.Standing, members []string, order rankcache.Direction) ([]rankcache.Standing, rankcache.Stamp) {
	from := len(dst)
	for _, m := range members {
		dst = append(dst, rankcache.Standing{Member: m})
	}
	v, hold := b.standings(dst[from:], order)
	hold.release()
	if v == nil {
		return dst, rankcache.Stamp{}
	}
	return dst, v.stamp()
}

// standings fills in score and rank of rows, whose Member is set, and returns
// the view that they are of, held, nil before the first.
func (b *Board) standings(rows []rankcache.Standing, order rankcache.Direction) (*view, hold) {
	for sure := false; ; {
		v, hold := b.hold() // r1
		if v == nil {
			return nil, hold
		}
		v.lookup(rows, sure)                           // r2
		if over := v.overwritten.Load(); over != nil { // r3
			v.restore(rows, *over)  // r4
			if b.view.Load() != v { // r5
				hold.release()
				continue
			}
		}
		if v.rank(rows, order) {
			return v, hold
		}
		hold.release()
		sure = true // a member of the same hash was taken for another
	}
}

// Around returns the member's rank, and the page of it with at most n
// neighbours on either side, all of one moment. If the member is not on the
// board, ok is false and the page has a stamp only.
func (b *Board) Around(member string, n int, order rankcache.Direction) (page rankcache.Page, rank int, ok bool) {
	me := [1]rankcache.Standing{{Member: member}}
	v, hold := b.standings(me[:], order)
	if v == nil {
		return page, 0, false
	}
	defer hold.release()
	rank = me[0].Rank
	if rank == 0 {
		return rankcache.Page{Stamp: v.stamp()}, 0, false
	}
	n = min(n, v.rows)
	start := max(0, rank-1-n)
	return v.page(start, rank+n-start, order), rank, true
}
