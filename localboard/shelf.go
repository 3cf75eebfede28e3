package localboard

import (
	"slices"
	"sort"
)

// shelfChunks is how many chunks a shelf holds at most, and shelfFill how many a
// rebuilt one has.
const (
	shelfChunks = nodeMarks
	shelfFill   = shelfChunks * 3 / 4
)

// shelf is a run of chunks, best first, with what a search needs to know before
// it reaches a chunk. No chunk in it is empty.
type shelf struct {
	heads  [nodeMarks]mark         // of the first row of each chunk; zero from n on, as a chunk's marks are
	starts [shelfChunks + 1]uint32 // rows of the shelf before each chunk, and at n all
	chunks [shelfChunks]*chunk
	n      int
	age    uint64 // as that of a chunk
	spares *spares
}

func (s *shelf) head() mark { return s.heads[0] }

func (s *shelf) first() row { return s.chunks[0].row(0) }

// rows returns how many rows the shelf has.
func (s *shelf) rows() int { return int(s.starts[s.n]) }

// rowsOf returns how many rows chunk i has. It looks at no chunk, and nothing
// here looks at one that need not be touched: it is hardly ever in the cache.
func (s *shelf) rowsOf(i int) int { return int(s.starts[i+1] - s.starts[i]) }

// chunkOf returns the chunk that r is in, or belongs in: the last one whose head
// is not after r, or the first.
func (s *shelf) chunkOf(m *members, r row) int {
	i := max(countInNode(&s.heads, r.mark), 1) - 1
	if rest := s.n - 1 - i; rest > 0 && s.heads[i+1] == r.mark { // it is r's, or r's id decides
		i += sort.Search(rest, func(k int) bool { return s.isAfter(m, i+1+k, r) })
	}
	return i
}

// isAfter says whether chunk i begins after r.
func (s *shelf) isAfter(m *members, i int, r row) bool {
	if h := s.heads[i]; h != r.mark {
		return h.before(r.mark) == 0
	}
	return m.before(r, s.chunks[i].row(0))
}

// insert adds r, which is not in the shelf. The shelf is not full.
func (s *shelf) insert(m *members, r row) {
	if s.n == 0 {
		s.link(0, &chunk{age: s.age})
	}
	i := s.chunkOf(m, r)
	if s.rowsOf(i) == chunkRows {
		if s.split(i); !s.isAfter(m, i+1, r) {
			i++
		}
	}
	c := s.own(i)
	c.insert(c.place(m, r), r)
	s.heads[i] = c.head()
	s.grew(i, 1)
}

// remove takes r out, which is in the shelf. The shelf may then be empty.
func (s *shelf) remove(m *members, r row) {
	i := s.chunkOf(m, r)
	c := s.own(i)
	c.remove(c.place(m, r))
	s.heads[i] = c.head()
	s.grew(i, -1)
	if c.n == 0 {
		s.unlink(i, i+1)
		return
	}
	s.merge(i)
}

// move changes the score of a row without it leaving its chunk, or returns false:
// it would have to.
func (s *shelf) move(m *members, from, to row) bool {
	i := s.chunkOf(m, from)
	if i > 0 && s.isAfter(m, i, to) || i+1 < s.n && !s.isAfter(m, i+1, to) {
		return false
	}
	c := s.own(i)
	c.move(c.place(m, from), c.place(m, to), to)
	s.heads[i] = c.head()
	return true
}

// own returns chunk i as one that the writer may change.
func (s *shelf) own(i int) *chunk {
	c := s.chunks[i]
	if c.age != s.age {
		c = s.spares.copyChunk(c)
		c.age = s.age
		s.chunks[i] = c
	}
	return c
}

// grew notes that chunk i has that many rows more.
func (s *shelf) grew(i, rows int) { s.shift(i+1, rows) }

// shift notes that the chunks from i on begin that many rows later.
func (s *shelf) shift(i, rows int) {
	for ; i <= s.n; i++ {
		s.starts[i] += uint32(rows)
	}
}

// split moves the second half of chunk i into a new chunk behind it.
func (s *shelf) split(i int) {
	c, half := s.own(i), chunkRows/2
	tail := &chunk{age: s.age}
	tail.take(c, half, c.n)
	c.cut(half)
	s.grew(i, -tail.n)
	s.link(i+1, tail)
}

// merge joins chunk i with a neighbour if both leave room in one.
func (s *shelf) merge(i int) {
	if i+1 == s.n || i > 0 && s.rowsOf(i-1) < s.rowsOf(i+1) {
		i--
	}
	if i < 0 || s.rowsOf(i)+s.rowsOf(i+1) > chunkFill {
		return
	}
	c, tail := s.own(i), s.chunks[i+1]
	c.take(tail, 0, tail.n)
	s.grew(i, tail.n)
	s.unlink(i+1, i+2)
}

// link puts c in place i.
func (s *shelf) link(i int, c *chunk) {
	copy(s.heads[i+1:], s.heads[i:s.n])
	copy(s.chunks[i+1:], s.chunks[i:s.n])
	copy(s.starts[i+1:], s.starts[i:s.n+1])
	s.n++
	s.heads[i], s.chunks[i] = c.head(), c
	s.grew(i, c.n)
}

// unlink takes chunks [from, to) away.
func (s *shelf) unlink(from, to int) {
	rows, n := int(s.starts[to]-s.starts[from]), s.n-(to-from)
	copy(s.heads[from:], s.heads[to:s.n])
	copy(s.chunks[from:], s.chunks[to:s.n])
	copy(s.starts[from:], s.starts[to:s.n+1])
	clear(s.heads[n:s.n])
	clear(s.chunks[n:s.n])
	s.n = n
	s.shift(from, -rows)
}

// take appends chunks [from, to) of other, which is to drop them.
func (s *shelf) take(other *shelf, from, to int) {
	copy(s.heads[s.n:], other.heads[from:to])
	copy(s.chunks[s.n:], other.chunks[from:to])
	for i := from; i < to; i++ {
		s.starts[s.n+1] = s.starts[s.n] + uint32(other.rowsOf(i))
		s.n++
	}
}

// locate returns the chunk, and the row within it, of the shelf's row i.
func (s *shelf) locate(i int) (chunk, row int) {
	chunk, found := slices.BinarySearch(s.starts[:s.n], uint32(i))
	if !found {
		chunk--
	}
	return chunk, i - int(s.starts[chunk])
}
