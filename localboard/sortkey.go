package localboard

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// sortKey is the sort key of a row: the score and 8 bytes of the id, both as numbers of which the greater stands first.
// Rows of different members rarely have the same sort key; those that do sort by their ids.
//
// The zero sortKey stands after that of every row: no score maps to 0.
type sortKey struct{ score, idKey uint64 }

func newSortKey(score float64, idKey uint64) sortKey { return sortKey{sortableScore(score), idKey} }

// sortableScore returns a number that is greater for a greater score. score is neither NaN nor -0.
func sortableScore(score float64) uint64 {
	b := math.Float64bits(score)
	return b ^ (uint64(int64(b)>>63) | 1<<63)
}

// value returns the score that sortableScore was given.
func (a sortKey) value() float64 {
	return math.Float64frombits(a.score ^ (^uint64(int64(a.score)>>63) | 1<<63))
}

// before returns 1 if a stands before b, else 0, by subtraction: branches of a binary search are mispredicted.
func (a sortKey) before(b sortKey) int {
	_, borrow := bits.Sub64(b.idKey, a.idKey, 0)
	_, borrow = bits.Sub64(b.score, a.score, borrow)
	return int(borrow)
}

// countBefore returns how many of sorted keys stand before a, in a number of steps that depends on none.
func countBefore(keys []sortKey, a sortKey) int {
	from, n := 0, len(keys)
	for n > 0 {
		half := (n + 1) / 2
		from += half & -keys[from+half-1].before(a)
		n -= half
	}
	return from
}

// nodeKeys is how many keys a node of the index has at most: with 31 a leaf takes 640 bytes and an inner node 896, two
// of the allocator's sizes. Measured standings in a server (rankcache bench read): 1.27 and 1.34 times the fixed body
// over TCP and Unix socket, with 63 1.28 and 1.37, with 15 1.30 and 1.35.
const nodeKeys = 31

const keysPerLine = 4 // how many keys share a cache line

// countInNode is countBefore for a node's keys, the unused zero: the last key of every cache line first, all at once.
func countInNode(keys *[nodeKeys]sortKey, a sortKey) int {
	lines := 0
	for i := keysPerLine - 1; i < nodeKeys; i += keysPerLine {
		lines += keys[i].before(a)
	}
	n := lines * keysPerLine
	line := keys[n : n+keysPerLine-1]
	for i := range line {
		n += line[i].before(a)
	}
	return n
}

// row is one member's place in the index.
type row struct {
	sortKey
	handle uint32
}

func newRow(score float64, idKey uint64, handle uint32) row {
	return row{newSortKey(score, idKey), handle}
}

// before reports whether a stands before b in Redis's descending order: by score, then by the bytes of the id.
func (m *members) before(a, b row) bool {
	if a.sortKey != b.sortKey {
		return a.sortKey.before(b.sortKey) == 1
	}
	return a.handle != b.handle && m.at(a.handle).id() > m.at(b.handle).id()
}

// compare is before for the sort functions. It returns 0 only for the same member.
func (m *members) compare(a, b row) int {
	if m.before(a, b) {
		return -1
	}
	if a.handle == b.handle {
		return 0
	}
	return 1
}

func (m *members) sort(rows []row) { slices.SortFunc(rows, m.compare) }

// idKey returns 8 bytes of id as a number that sorts as ids do, which decides most ties without reading ids. Ids
// without the common prefix have the least key or the greatest, by the side on which they sort.
func (m *members) idKey(id string) uint64 {
	rest, ok := strings.CutPrefix(id, m.prefix)
	if !ok {
		if id < m.prefix {
			return 0
		}
		return math.MaxUint64
	}
	if len(rest) >= 8 {
		return binary.BigEndian.Uint64([]byte(rest[:8]))
	}
	var k uint64
	for i := range len(rest) {
		k |= uint64(rest[i]) << (56 - 8*i)
	}
	return k
}

const prefixSample = 64 // how many members commonPrefix reads. A board with fewer has no common prefix.

// commonPrefix returns the common prefix of a sample's ids. Any is correct; a long one makes keys more selective.
func (m *members) commonPrefix() string {
	if m.count < prefixSample {
		return ""
	}
	prefix, t := "", m.table
	for i := range prefixSample {
		at := i * t.size / prefixSample
		for t.at(at).entry.Load() == 0 {
			at = t.next(at)
		}
		id := m.at(uint32(t.at(at).entry.Load()) - 1).id()
		if i == 0 {
			prefix = id
		}
		prefix = prefix[:shared(prefix, id)]
	}
	return strings.Clone(prefix) // does not keep the id's block alive
}

func shared(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
