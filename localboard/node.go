package localboard

import (
	"slices"
	"sort"
)

// Most children and rows of nodes: at the first build, at later ones, and after a join. The rest is for insertions.
const (
	maxChildren = nodeKeys
	maxLeafRows = nodeKeys
	buildFill   = nodeKeys - 2
	rebuildFill = nodeKeys * 3 / 4
	joinFill    = nodeKeys - 5
)

// innerNode is a run of leaves, none empty, with what a search needs before a leaf: few leaves are in the cache.
type innerNode struct {
	keys    [nodeKeys]sortKey       // of the first row of each leaf; zero from n on, as a leaf's are
	starts  [maxChildren + 1]uint32 // rows of the node before each leaf; at n, all
	leaves  [maxChildren]*leaf
	n       int
	version uint64 // see leaf
}

func (in *innerNode) firstKey() sortKey { return in.keys[0] }

func (in *innerNode) firstRow() row { return in.leaves[0].row(0) }

func (in *innerNode) rows() int { return int(in.starts[in.n]) }

func (in *innerNode) leafRows(i int) int { return int(in.starts[i+1] - in.starts[i]) }

// childFor returns the leaf that r belongs in: the last whose first row is not after r, or the first.
func (in *innerNode) childFor(m *members, r row) int {
	i := max(countInNode(&in.keys, r.sortKey), 1) - 1
	if rest := in.n - 1 - i; rest > 0 && in.keys[i+1] == r.sortKey { // r itself, or the id decides
		i += sort.Search(rest, func(k int) bool { return in.startsAfter(m, i+1+k, r) })
	}
	return i
}

// startsAfter reports whether the first row of leaf i is after r.
func (in *innerNode) startsAfter(m *members, i int, r row) bool {
	if k := in.keys[i]; k != r.sortKey {
		return k.before(r.sortKey) == 0
	}
	return m.before(r, in.leaves[i].row(0))
}

// insert adds r, which is not in the node. The node has fewer than maxChildren leaves.
func (in *innerNode) insert(m *members, r row) {
	if in.n == 0 {
		in.insertLeaf(0, &leaf{version: in.version})
	}
	i := in.childFor(m, r)
	if in.leafRows(i) == maxLeafRows {
		if in.splitLeaf(i); !in.startsAfter(m, i+1, r) {
			i++
		}
	}
	l := in.writable(i)
	l.insert(l.lowerBound(m, r), r)
	in.keys[i] = l.firstKey()
	in.addRows(i, 1)
}

func (in *innerNode) remove(m *members, r row) {
	i := in.childFor(m, r)
	l := in.writable(i)
	l.remove(l.lowerBound(m, r))
	in.keys[i] = l.firstKey()
	in.addRows(i, -1)
	if l.n == 0 {
		in.removeLeaves(i, i+1)
		return
	}
	in.mergeLeaf(i)
}

// update changes the score of a row that stays in its leaf; false, and nothing changed, if it has to leave.
func (in *innerNode) update(m *members, from, to row) bool {
	i := in.childFor(m, from)
	if i > 0 && in.startsAfter(m, i, to) || i+1 < in.n && !in.startsAfter(m, i+1, to) {
		return false
	}
	l := in.writable(i)
	l.move(l.lowerBound(m, from), l.lowerBound(m, to), to)
	in.keys[i] = l.firstKey()
	return true
}

// writable returns leaf i, or a copy in its place if a ranking has it.
func (in *innerNode) writable(i int) *leaf {
	if l := in.leaves[i]; l.version != in.version {
		mine := *l
		mine.version = in.version
		in.leaves[i] = &mine
	}
	return in.leaves[i]
}

func (in *innerNode) addRows(i, rows int) { in.shiftStarts(i+1, rows) }

func (in *innerNode) shiftStarts(i, rows int) {
	for ; i <= in.n; i++ {
		in.starts[i] += uint32(rows)
	}
}

// splitLeaf moves the second half of leaf i into a new leaf behind it.
func (in *innerNode) splitLeaf(i int) {
	l, half := in.writable(i), maxLeafRows/2
	tail := &leaf{version: in.version}
	tail.appendFrom(l, half, l.n)
	l.truncate(half)
	in.addRows(i, -tail.n)
	in.insertLeaf(i+1, tail)
}

// mergeLeaf joins leaf i with a neighbour if the result is not too full.
func (in *innerNode) mergeLeaf(i int) {
	if i+1 == in.n || i > 0 && in.leafRows(i-1) < in.leafRows(i+1) {
		i--
	}
	if i < 0 || in.leafRows(i)+in.leafRows(i+1) > joinFill {
		return
	}
	l, tail := in.writable(i), in.leaves[i+1]
	l.appendFrom(tail, 0, tail.n)
	in.addRows(i, tail.n)
	in.removeLeaves(i+1, i+2)
}

func (in *innerNode) insertLeaf(i int, l *leaf) {
	copy(in.keys[i+1:], in.keys[i:in.n])
	copy(in.leaves[i+1:], in.leaves[i:in.n])
	copy(in.starts[i+1:], in.starts[i:in.n+1])
	in.n++
	in.keys[i], in.leaves[i] = l.firstKey(), l
	in.addRows(i, l.n)
}

func (in *innerNode) removeLeaves(from, to int) {
	rows, n := int(in.starts[to]-in.starts[from]), in.n-(to-from)
	copy(in.keys[from:], in.keys[to:in.n])
	copy(in.leaves[from:], in.leaves[to:in.n])
	copy(in.starts[from:], in.starts[to:in.n+1])
	clear(in.keys[n:in.n])
	clear(in.leaves[n:in.n])
	in.n = n
	in.shiftStarts(from, -rows)
}

// appendFrom appends leaves [from, to) of other, which must then drop them.
func (in *innerNode) appendFrom(other *innerNode, from, to int) {
	copy(in.keys[in.n:], other.keys[from:to])
	copy(in.leaves[in.n:], other.leaves[from:to])
	for i := from; i < to; i++ {
		in.starts[in.n+1] = in.starts[in.n] + uint32(other.leafRows(i))
		in.n++
	}
}

// locate returns the leaf, and the row within it, of the node's row i.
func (in *innerNode) locate(i int) (leaf, row int) {
	leaf, found := slices.BinarySearch(in.starts[:in.n], uint32(i))
	if !found {
		leaf--
	}
	return leaf, i - int(in.starts[leaf])
}

// leaf is a run of rows, best first. Keys and handles are apart, so that a search reads keys only.
type leaf struct {
	keys    [nodeKeys]sortKey // zero from n on; first, so that they begin with a cache line
	handles [maxLeafRows]uint32
	n       int
	version uint64 // the publication that the node was made for; those of older ones belong to readers
}

func (l *leaf) row(i int) row { return row{l.keys[i], l.handles[i]} }

func (l *leaf) firstKey() sortKey { return l.keys[0] }

func (l *leaf) set(i int, r row) { l.keys[i], l.handles[i] = r.sortKey, r.handle }

// lowerBound returns how many rows are before r: where r is, or belongs.
func (l *leaf) lowerBound(m *members, r row) int {
	i := countInNode(&l.keys, r.sortKey)
	if i < l.n && l.keys[i] == r.sortKey && l.handles[i] != r.handle {
		return l.lowerBoundByID(m, r, i)
	}
	return i
}

// indexOf is lowerBound for a row of the leaf. It reads keys only, hardly more than the search has read.
func (l *leaf) indexOf(m *members, r row) int {
	i := countInNode(&l.keys, r.sortKey)
	if i+1 < maxLeafRows && l.keys[i+1] == r.sortKey {
		return l.lowerBoundByID(m, r, i)
	}
	return i
}

// lowerBoundByID is lowerBound among rows with the same sort key; from is the first.
func (l *leaf) lowerBoundByID(m *members, r row, from int) int {
	return from + sort.Search(l.n-from, func(i int) bool { return !m.before(l.row(from+i), r) })
}

// shift moves rows [from, to) to begin at at.
func (l *leaf) shift(at, from, to int) {
	copy(l.keys[at:], l.keys[from:to])
	copy(l.handles[at:], l.handles[from:to])
}

func (l *leaf) insert(i int, r row) {
	l.shift(i+1, i, l.n)
	l.set(i, r)
	l.n++
}

func (l *leaf) remove(i int) {
	l.shift(i, i+1, l.n)
	l.truncate(l.n - 1)
}

func (l *leaf) truncate(n int) {
	clear(l.keys[n:l.n])
	l.n = n
}

// move removes row i and inserts r where to rows are before it, the removed one counted.
func (l *leaf) move(i, to int, r row) {
	if to > i {
		to--
		l.shift(i, i+1, to+1)
	} else {
		l.shift(to+1, to, i)
	}
	l.set(to, r)
}

func (l *leaf) appendFrom(other *leaf, from, to int) {
	copy(l.keys[l.n:], other.keys[from:to])
	copy(l.handles[l.n:], other.handles[from:to])
	l.n += to - from
}
