package localboard

import (
	"slices"
	"unsafe"
)

// Limits of a freeList. A publication of 500 changes copies some 350 leaves and 130
// inner nodes; a ranking that is pinned for more than maxRetired publications is
// left to the garbage collector.
const (
	maxFreeLeaves  = 2048
	maxFreeInners  = 512
	maxFreeChanges = 4096 // of one list
	maxRetired     = 4
)

// freeList is the memory that the writer copies nodes into: those that earlier
// publications replaced and no reader has pinned. They are in the cache, where new
// memory is not, and make no garbage. The zero freeList is ready for use, by the
// writer only.
type freeList struct {
	leaves      []*leaf
	inners      []*innerNode
	roots       []rootBuffer
	pins        []*pins // a late reader may still count itself there, and undo it at once
	changeLists [][]change
	retired     []retired // replaced, but possibly pinned; oldest first
	pending     retired   // replaced for the next publication
	// permanent is the newest version that may be read for good. Nodes up to that
	// version may be in it, and are left to the garbage collector.
	permanent    uint64
	hasPermanent bool
}

// retired has the nodes that one publication replaced. It was in the ranking before it, and
// possibly in older ones.
type retired struct {
	pins    *pins // of that ranking
	version uint64
	leaves  []*leaf
	inners  []*innerNode
	root    rootBuffer // of that ranking alone
	changes []change   // that overwrote its scores
}

// copyLeaf returns a copy of l, which it replaces.
func (f *freeList) copyLeaf(l *leaf) *leaf {
	mine := pop(&f.leaves)
	*mine = *l
	f.pending.leaves = append(f.pending.leaves, l)
	return mine
}

// copyInner returns a copy of in, which it replaces.
func (f *freeList) copyInner(in *innerNode) *innerNode {
	mine := pop(&f.inners)
	*mine = *in
	f.pending.inners = append(f.pending.inners, in)
	return mine
}

// pop removes and returns the last of list, or a new one if it is empty.
func pop[T any](list *[]*T) *T {
	n := len(*list)
	if n == 0 {
		return new(T)
	}
	last := (*list)[n-1]
	*list = (*list)[:n-1]
	return last
}

// takeRoot returns a buffer to write a ranking to.
func (f *freeList) takeRoot() (r rootBuffer) {
	if n := len(f.roots); n > 0 {
		r, f.roots = f.roots[n-1], f.roots[:n-1]
	}
	return r
}

// takePins returns pins for a ranking.
func (f *freeList) takePins() *pins { return pop(&f.pins) }

// takeChangeList returns an empty list for about n changes.
func (f *freeList) takeChangeList(n int) []change {
	if last := len(f.changeLists) - 1; last >= 0 {
		l := f.changeLists[last]
		f.changeLists = f.changeLists[:last]
		return l[:0]
	}
	return make([]change, 0, min(n, maxFreeChanges))
}

// retire is called when k is no longer the current ranking, with the changes that
// replaced it. It reclaims the nodes that are no longer pinned.
func (f *freeList) retire(k *ranking, by []change) {
	f.pending.pins, f.pending.version, f.pending.root, f.pending.changes = k.pins, k.version, k.rootBuffer, by
	f.retired = append(f.retired, f.pending)
	f.pending = retired{}
	for len(f.retired) > 0 && (f.retired[0].pins.idle() || len(f.retired) > maxRetired) {
		r := f.retired[0]
		f.retired = slices.Delete(f.retired, 0, 1)
		f.reclaim(&r)
		clear(r.leaves) // so that those left to the garbage collector are not referenced
		clear(r.inners)
		f.pending.leaves, f.pending.inners = r.leaves[:0], r.inners[:0]
	}
}

// reclaim moves the oldest retired memory to the free list, except for nodes that
// may be in a ranking that is read for good: those up to version permanent.
func (f *freeList) reclaim(r *retired) {
	if !r.pins.idle() || r.pins.permanent.Load() {
		f.permanent, f.hasPermanent = max(f.permanent, r.version), true
	} else {
		f.roots, f.pins = append(f.roots, r.root), append(f.pins, r.pins)
		if cap(r.changes) <= maxFreeChanges {
			f.changeLists = append(f.changeLists, r.changes)
		}
	}
	for _, l := range r.leaves {
		if f.reusable(l.version) && len(f.leaves) < maxFreeLeaves {
			f.leaves = append(f.leaves, l)
		}
	}
	for _, in := range r.inners {
		if f.reusable(in.version) && len(f.inners) < maxFreeInners {
			f.inners = append(f.inners, in)
		}
	}
}

// reusable reports whether nodes of that version are in no ranking that is read for
// good.
func (f *freeList) reusable(version uint64) bool { return !f.hasPermanent || version > f.permanent }

func (f *freeList) bytes() int {
	leaves, inners, roots, changes := len(f.leaves)+len(f.pending.leaves), len(f.inners)+len(f.pending.inners), 0, 0
	for i := range f.retired {
		leaves += len(f.retired[i].leaves)
		inners += len(f.retired[i].inners)
		roots += f.retired[i].root.bytes()
		changes += cap(f.retired[i].changes)
	}
	for _, l := range f.changeLists {
		changes += cap(l)
	}
	for i := range f.roots {
		roots += f.roots[i].bytes()
	}
	return leaves*int(unsafe.Sizeof(leaf{})) + inners*int(unsafe.Sizeof(innerNode{})) + roots + len(f.pins)*int(unsafe.Sizeof(pins{})) + changes*int(unsafe.Sizeof(change{}))
}
