package localboard

// When a board moves to new storage: removed members outnumber half of those
// that are there, or those that are there have become four times as many since
// the common prefix of their ids was chosen. Both only above a floor, under
// which memory is not worth the work.
const (
	moveFloor  = 1024
	moveGrowth = 4
)

// tidy moves what is still needed into new storage when enough is not.
func (b *Board) tidy() {
	removed := b.members.count - b.live - len(b.changes) // at least; the changes' are not settled yet
	switch {
	case removed-b.unforgotten > b.live/2+moveFloor:
		b.move()
	case b.order != nil && b.live > moveGrowth*b.movedAt+moveFloor:
		b.movedAt = b.live
		if b.members.commonPrefix() != b.members.prefix {
			b.move()
		}
	}
}

// move leaves out the removed members that may be forgotten and gives the rest
// new handles, in new storage. Nothing of the old is written any more, so that
// readers finish in it undisturbed; the next Publish leads new ones here.
func (b *Board) move() {
	from := b.members
	b.members = newMembers(from.seed, b.live)
	handles := make([]uint32, from.limit)
	for h, r := range from.all {
		if b.forgettable(&from, r) {
			b.forgotten = max(b.forgotten, r.seq)
			continue
		}
		handles[h] = b.adopt(&from, r)
	}
	b.members.prefix = b.members.commonPrefix()
	for i := range b.changes {
		c := &b.changes[i]
		c.handle = handles[c.handle]
		c.key = b.members.key(b.members.at(c.handle).name())
	}
	if b.order != nil {
		b.order = b.order.renamed(&b.members, handles)
	}
	b.moved, b.movedAt = true, b.live
	b.unforgotten = max(0, b.members.count-b.live-len(b.changes))
}

// forgettable says that a member is removed for good: every update that may
// still come has a higher seq than the removal.
func (b *Board) forgettable(m *members, r *record) bool {
	return isAbsent(m.published(r)) && r.change.Load() == 0 && r.seq <= b.seen.contiguous
}

// adopt gives a member of the old storage a record in the new.
func (b *Board) adopt(m *members, from *record) uint32 {
	h, r := b.members.add(from.name())
	b.members.publish(r, m.published(from))
	r.seq = from.seq
	r.change.Store(from.change.Load())
	return h
}

// renamed returns the same order with other handles.
func (o *order) renamed(m *members, handles []uint32) *order {
	b := newBuilder(o.age)
	for r := range o.all {
		h := handles[r.handle]
		b.add(row{mark{r.score, m.key(m.at(h).name())}, h})
	}
	return b.close()
}
