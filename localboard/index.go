package localboard

import (
	"slices"
	"sort"
	"unsafe"
)

// index is the writer's sorted set of rows, best first: a counted B+ tree of three levels, whose root is a slice. What
// was frozen into a ranking never changes: a changed leaf and its inner node are copied.
type index struct {
	root
	counts  []uint32 // rows of each inner node
	rows    int
	version uint64 // of the next publication; nodes of this version are the writer's
}

// root is where a search begins. No inner node in it is empty.
type root struct {
	children []*innerNode
	keys     []sortKey // of the first row of each child
}

// childFor returns the child that r belongs in: the last whose first row is not after r, or the first.
func (t *root) childFor(m *members, r row) int {
	i := countBefore(t.keys[1:], r.sortKey)
	if rest := len(t.keys) - 1 - i; rest > 0 && t.keys[i+1] == r.sortKey { // r itself, or the id decides
		i += sort.Search(rest, func(k int) bool { return t.startsAfter(m, i+1+k, r) })
	}
	return i
}

// startsAfter reports whether the first row of child i is after r.
func (t *root) startsAfter(m *members, i int, r row) bool {
	if k := t.keys[i]; k != r.sortKey {
		return k.before(r.sortKey) == 0
	}
	return m.before(r, t.children[i].firstRow())
}

func (t *root) all(yield func(row) bool) {
	for l := range t.leaves {
		for i := range l.n {
			if !yield(l.row(i)) {
				return
			}
		}
	}
}

func (t *root) leaves(yield func(*leaf) bool) {
	for _, child := range t.children {
		for _, l := range child.leaves[:child.n] {
			if !yield(l) {
				return
			}
		}
	}
}

func (t *root) bytes() int {
	n := len(t.children) * int(unsafe.Sizeof(innerNode{}))
	for range t.leaves {
		n += int(unsafe.Sizeof(leaf{}))
	}
	return n
}

func (x *index) insert(m *members, r row) {
	if len(x.children) == 0 {
		x.children, x.keys, x.counts = []*innerNode{{version: x.version}}, []sortKey{{}}, []uint32{0}
	}
	i := x.childFor(m, r)
	if x.children[i].n == maxChildren {
		if x.splitChild(i); !x.startsAfter(m, i+1, r) {
			i++
		}
	}
	x.writable(i).insert(m, r)
	x.rows++
	x.childChanged(i)
}

func (x *index) remove(m *members, r row) {
	i := x.childFor(m, r)
	child := x.writable(i)
	child.remove(m, r)
	x.rows--
	if child.n == 0 {
		x.removeChild(i)
		return
	}
	x.childChanged(i)
	x.mergeChild(i)
}

// update changes the score of a member's row. Most stay in their leaf, which costs one copy of it at most.
func (x *index) update(m *members, from, to row) {
	i := x.childFor(m, from)
	stays := (i == 0 || !x.startsAfter(m, i, to)) && (i+1 == len(x.keys) || x.startsAfter(m, i+1, to))
	if stays && x.writable(i).update(m, from, to) {
		x.keys[i] = x.children[i].firstKey()
		return
	}
	x.remove(m, from)
	x.insert(m, to)
}

// writable returns child i, or a copy in its place if a ranking has it.
func (x *index) writable(i int) *innerNode {
	if child := x.children[i]; child.version != x.version {
		mine := *child
		mine.version = x.version
		x.children[i] = &mine
	}
	return x.children[i]
}

func (x *index) childChanged(i int) {
	child := x.children[i]
	x.counts[i], x.keys[i] = uint32(child.rows()), child.firstKey()
}

// splitChild moves the second half of child i into a new child behind it.
func (x *index) splitChild(i int) {
	child, half := x.writable(i), maxChildren/2
	tail := &innerNode{version: x.version}
	tail.appendFrom(child, half, child.n)
	child.removeLeaves(half, child.n)
	x.childChanged(i)
	x.insertChild(i+1, tail)
}

// mergeChild joins child i with a neighbour if the result is not too full.
func (x *index) mergeChild(i int) {
	if i+1 == len(x.children) || i > 0 && x.children[i-1].n < x.children[i+1].n {
		i--
	}
	if i < 0 || x.children[i].n+x.children[i+1].n > joinFill {
		return
	}
	child, tail := x.writable(i), x.children[i+1]
	child.appendFrom(tail, 0, tail.n)
	x.childChanged(i)
	x.removeChild(i + 1)
}

func (x *index) insertChild(i int, child *innerNode) {
	x.children = slices.Insert(x.children, i, child)
	x.keys = slices.Insert(x.keys, i, child.firstKey())
	x.counts = slices.Insert(x.counts, i, uint32(child.rows()))
}

func (x *index) removeChild(i int) {
	x.children = slices.Delete(x.children, i, i+1)
	x.keys = slices.Delete(x.keys, i, i+1)
	x.counts = slices.Delete(x.counts, i, i+1)
}

// freeze returns the index as it is as a ranking for readers, and begins the next version.
func (x *index) freeze() ranking {
	x.version++
	return ranking{
		root:   root{slices.Clone(x.children), slices.Clone(x.keys)},
		starts: starts(x.counts),
		rows:   x.rows,
	}
}

func starts(counts []uint32) []uint32 {
	starts, n := make([]uint32, len(counts)), uint32(0)
	for i, c := range counts {
		starts[i] = n
		n += c
	}
	return starts
}

func (x *index) bytes() int {
	return x.root.bytes() + cap(x.children)*8 + cap(x.keys)*int(unsafe.Sizeof(sortKey{})) + cap(x.counts)*4
}

func (x *index) withHandles(m *members, handles []uint32) *index {
	b := newBuilder(x.version, rebuildFill)
	for r := range x.all {
		h := handles[r.handle]
		b.add(row{sortKey{r.score, m.idKey(m.at(h).id())}, h})
	}
	return b.close()
}

// merged returns the index without gone and with added, which it sorts. For many rows it is cheaper than updates.
func (x *index) merged(m *members, gone bitset, added []row) *index {
	m.sort(added)
	b := newBuilder(x.version, rebuildFill)
	for r := range x.all {
		if gone.has(r.handle) {
			continue
		}
		for len(added) > 0 && m.before(added[0], r) {
			b.add(added[0])
			added = added[1:]
		}
		b.add(r)
	}
	for _, r := range added {
		b.add(r)
	}
	return b.close()
}

// build returns the index of rows, which it sorts.
func build(m *members, rows rowPieces, version uint64) *index {
	b := newBuilder(version, buildFill)
	for r := range rows.sorted(m) {
		b.add(r)
	}
	return b.close()
}

// builder makes an index from sorted rows.
type builder struct {
	index
	fill  int        // of its nodes
	inner *innerNode // not yet in the root
	leaf  *leaf      // not yet in inner
}

func newBuilder(version uint64, fill int) *builder {
	return &builder{index: index{version: version}, fill: fill}
}

func (b *builder) add(r row) {
	if b.leaf == nil || b.leaf.n == b.fill {
		b.closeLeaf()
		b.leaf = &leaf{version: b.version}
	}
	b.leaf.set(b.leaf.n, r)
	b.leaf.n++
	b.rows++
}

func (b *builder) closeLeaf() {
	if b.leaf == nil {
		return
	}
	if b.inner == nil || b.inner.n == b.fill {
		b.closeInner()
		b.inner = &innerNode{version: b.version}
	}
	b.inner.insertLeaf(b.inner.n, b.leaf)
	b.leaf = nil
}

func (b *builder) closeInner() {
	if b.inner != nil {
		b.insertChild(len(b.children), b.inner)
		b.inner = nil
	}
}

func (b *builder) close() *index {
	b.closeLeaf()
	b.closeInner()
	return &b.index
}
