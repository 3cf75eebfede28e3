package localboard

// Storage is compacted when half as many members are removed as live, or at four times the prefix's board size.
const (
	compactFloor = 1024
	prefixGrowth = 4
)

// maybeCompact compacts when much storage is not needed any more, or ids may have another common prefix.
func maybeCompact(s *writerState) {
	removed := s.members.count - s.live - len(s.changes) // at least: changes may be removals, too
	switch {
	case s.numbered:
	case removed-s.tombstones > s.live/2+compactFloor:
		compact(s)
	case s.index != nil && s.live > prefixGrowth*s.liveAtCompaction+compactFloor:
		s.liveAtCompaction = s.live
		if s.members.commonPrefix() != s.members.prefix {
			compact(s)
		}
	}
}

// compaction copies the members that are still needed into new storage, where they get new handles. The old storage is
// not written any more, so that readers finish in it undisturbed; the next Publish switches to the new.
type compaction struct {
	*writerState
	from    members  // the old storage
	handles []uint32 // new handle by old
}

func compact(s *writerState) {
	c := compaction{writerState: s, from: s.members, handles: make([]uint32, s.members.endHandle)}
	s.proof.renumbered()
	s.members = newMembers(c.from.seed, s.live)
	s.members.growth = c.from.growth
	c.copyMembers()
	s.members.prefix = s.members.commonPrefix()
	c.renumberChanges()
	if s.index != nil {
		s.index = s.index.withHandles(&s.members, c.handles)
	}
	s.freshStorage, s.liveAtCompaction = true, s.live
	s.tombstones = max(0, s.members.count-s.live-len(s.changes))
}

func (c *compaction) copyMembers() {
	for h, r := range c.from.all {
		m := c.from.of(h, r)
		if c.droppable(m) {
			c.forgottenSeq = max(c.forgottenSeq, m.seq)
			continue
		}
		c.handles[h] = c.copyMember(m)
	}
}

// droppable reports whether r is a tombstone whose member's later updates all have a higher seq.
func (c *compaction) droppable(m member) bool {
	return isAbsent(m.published()) && m.changeNo.Load() == 0 && m.seq <= c.seqs.contiguous
}

func (c *compaction) copyMember(from member) uint32 {
	m := c.members.add(from.id())
	m.publish(from.published())
	m.seq = from.seq
	m.changeNo.Store(from.changeNo.Load())
	return m.handle
}

func (c *compaction) renumberChanges() {
	for i := range c.changes {
		ch := &c.changes[i]
		ch.handle = c.handles[ch.handle]
		ch.idKey = c.members.idKey(c.members.at(ch.handle).id())
	}
}
