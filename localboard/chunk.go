package localboard

import "sort"

// chunkRows is how many rows a chunk holds at most, and chunkFill how full a
// rebuilt one is, which leaves room for rows that come.
const (
	chunkRows = nodeMarks
	chunkFill = chunkRows * 3 / 4
)

// row is one place of the order: a member with what it sorts by.
type row struct {
	mark
	handle uint32
}

func newRow(score float64, key uint64, handle uint32) row {
	return row{newMark(score, key), handle}
}

// before says whether a stands before b in Redis's falling order: by score,
// then by the bytes of the id.
func (m *members) before(a, b row) bool {
	if a.mark != b.mark {
		return a.mark.before(b.mark) == 1
	}
	return a.handle != b.handle && m.at(a.handle).name() > m.at(b.handle).name()
}

// chunk is a run of rows, best first. Marks and handles are apart, so that a
// search reads marks only.
type chunk struct {
	marks   [nodeMarks]mark // zero from n on; first, so that they begin with a cache line
	handles [chunkRows]uint32
	n       int
	// age is the publication that it was made for. The writer changes chunks of
	// the coming publication; older ones belong to readers.
	age uint64
}

func (c *chunk) row(i int) row { return row{c.marks[i], c.handles[i]} }

func (c *chunk) head() mark { return c.marks[0] }

func (c *chunk) set(i int, r row) { c.marks[i], c.handles[i] = r.mark, r.handle }

// place returns how many rows stand before r: where it is, or belongs.
func (c *chunk) place(m *members, r row) int {
	i := countInNode(&c.marks, r.mark)
	if i < c.n && c.marks[i] == r.mark && c.handles[i] != r.handle {
		return c.placeByID(m, r, i)
	}
	return i
}

// index is place for a row of the chunk. It reads marks only, and hardly ever
// more of them than the search has.
func (c *chunk) index(m *members, r row) int {
	i := countInNode(&c.marks, r.mark)
	if i+1 < chunkRows && c.marks[i+1] == r.mark {
		return c.placeByID(m, r, i)
	}
	return i
}

// placeByID is place for rows whose marks do not tell them apart; from is the
// first with the mark of r.
func (c *chunk) placeByID(m *members, r row, from int) int {
	return from + sort.Search(c.n-from, func(i int) bool { return !m.before(c.row(from+i), r) })
}

// shift moves rows [from, to) to begin at at, within the chunk.
func (c *chunk) shift(at, from, to int) {
	copy(c.marks[at:], c.marks[from:to])
	copy(c.handles[at:], c.handles[from:to])
}

func (c *chunk) insert(i int, r row) {
	c.shift(i+1, i, c.n)
	c.set(i, r)
	c.n++
}

func (c *chunk) remove(i int) {
	c.shift(i, i+1, c.n)
	c.cut(c.n - 1)
}

// cut drops the rows from n on.
func (c *chunk) cut(n int) {
	clear(c.marks[n:c.n])
	c.n = n
}

// move takes row i away and puts r where to rows stand before it, the row
// taken away counted.
func (c *chunk) move(i, to int, r row) {
	if to > i {
		to--
		c.shift(i, i+1, to+1)
	} else {
		c.shift(to+1, to, i)
	}
	c.set(to, r)
}

// take appends rows [from, to) of other.
func (c *chunk) take(other *chunk, from, to int) {
	copy(c.marks[c.n:], other.marks[from:to])
	copy(c.handles[c.n:], other.handles[from:to])
	c.n += to - from
}
