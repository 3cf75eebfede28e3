package localboard

import (
	"slices"
	"time"

	"rankcache"
)

// mergeShare decides how a publication changes the order: with more than rows /
// mergeShare changes it is written anew in one pass, else row by row. Measured at
// 210,000 rows, a pass costs as much as some 2,000 changes.
const mergeShare = 64

// Publish makes what was applied readable, if anything was, and otherwise costs
// next to nothing. The first one sorts the board, and from then on the order is
// kept: do not publish a board that is still being filled.
//
// Scores live in the table, which the views share, so that a standing costs one
// look-up. (Should the table grow, older views keep theirs, in which nothing is
// overwritten any more.) What keeps a score together with the view it is read for:
//
//	writer                                reader
//	w1 set old view's overwritten         r1 load view
//	w2 overwrite scores                   r2 load scores
//	w3 set new view                       r3 load view's overwritten: none? done
//	w4 clear the records' change          r4 load the records' change, restore
//	                                      r5 load view: the same? done, else again
//
// If r3 finds none, w1 had not happened, so that all scores of r2 are the
// view's. If r5 finds the same view, w3 had not happened: the scores are the
// view's or of this one publication, and those are restored by r4, because w4
// had not happened either. Otherwise a publication was completed meanwhile and
// the reader begins again with a newer view. No reader ever waits for a writer
// that was suspended half-way.
func (b *Board) Publish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.view.Load()
	if b.order != nil && !b.moved && len(b.changes) == 0 && old.top.Seq == b.progress().Total() {
		return
	}
	next, changes := b.next(old), b.changes
	if !b.moved { // else nobody reads this storage yet
		old.overwritten.Store(&changes) // w1
	}
	b.paused()
	b.overwrite(changes) // w2
	b.paused()
	b.view.Store(next) // w3
	b.paused()
	b.finish(changes) // w4
	if old != nil && old.holds != next.holds {
		old.spares.replaced(&old.ranking, changes)
	}
}

// paused lets a test hold the writer between two steps of a publication.
func (b *Board) paused() {
	if b.pause != nil {
		b.pause()
	}
}

// next makes the view that shows the changes.
func (b *Board) next(old *view) *view {
	v := &view{}
	if b.order != nil && len(b.changes) == 0 && !b.moved {
		v.ranking = old.ranking
	} else {
		b.arrange()
		v.ranking = b.order.freeze()
	}
	v.members = b.members
	if b.moved { // its handles are others
		old = nil
	}
	v.head = v.newHead(old)
	v.top = &rankcache.Top{
		Board:       b.id,
		Entries:     v.head.entries,
		Seq:         b.progress().Total(),
		Members:     v.rows,
		PublishedAt: time.Now(),
	}
	return v
}

func (b *Board) overwrite(changes []change) {
	for batch := range slices.Chunk(changes, fetchAhead) {
		for i := range batch { // all at once from memory
			b.members.published(b.members.at(batch[i].handle))
		}
		for i := range batch {
			b.members.publish(b.members.at(batch[i].handle), batch[i].next)
		}
	}
}

func (b *Board) finish(changes []change) {
	for i := range changes {
		b.members.at(changes[i].handle).change.Store(0)
	}
	b.moved = false
	if len(changes) > 0 { // else there is nothing in the list that readers could be at
		b.changes = b.order.spares.makeList(len(changes))
	}
}

// arrange brings the order up to the changes.
func (b *Board) arrange() {
	switch {
	case b.order == nil:
		b.members.prefix, b.movedAt = b.members.commonPrefix(), b.live
		b.order = build(&b.members, b.everyRow(), 0)
	case len(b.changes) > b.order.rows/mergeShare:
		b.order = b.order.merged(&b.members, b.changed(), b.comingRows())
	default:
		for m, i := b.manners(), 0; i < len(b.changes); i++ {
			m.before(i)
			b.arrangeOne(&b.changes[i])
		}
	}
}

func (b *Board) arrangeOne(c *change) {
	from, to := newRow(c.old, c.key, c.handle), newRow(c.next, c.key, c.handle)
	switch was, is := !isAbsent(c.old), !isAbsent(c.next); {
	case was && is && c.old != c.next:
		b.order.move(&b.members, from, to)
	case was && !is:
		b.order.remove(&b.members, from)
	case !was && is:
		b.order.insert(&b.members, to)
	}
}

// everyRow returns a row for every member, unsorted.
func (b *Board) everyRow() []row {
	rows := make([]row, 0, b.live)
	for h, r := range b.members.all {
		if score := b.members.published(r); !isAbsent(score) {
			rows = append(rows, newRow(score, b.members.key(r.name()), h))
		}
	}
	return rows
}

// changed returns which members have a change.
func (b *Board) changed() bitset {
	set := newBitset(b.members.limit)
	for i := range b.changes {
		set.put(b.changes[i].handle)
	}
	return set
}

// comingRows returns the rows that the changes bring, unsorted.
func (b *Board) comingRows() []row {
	rows := make([]row, 0, len(b.changes))
	for _, c := range b.changes {
		if !isAbsent(c.next) {
			rows = append(rows, newRow(c.next, c.key, c.handle))
		}
	}
	return rows
}
