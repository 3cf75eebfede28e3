package localboard

import (
	"slices"
	"sort"
)

// order is the writer's ordered set: chunks of rows, best first. It never
// changes a chunk that was frozen into a ranking, but replaces it by a copy.
type order struct {
	spine
	counts []uint32 // rows of each chunk
	rows   int
	age    uint64 // of the coming publication; chunks of this age are the writer's
}

// spine is what a search goes through before it reaches a chunk. No chunk in it
// is empty.
type spine struct {
	chunks []*chunk
	heads  []mark // of the first row of each chunk
}

// chunkOf returns the chunk that r is in, or belongs in: the last one whose head
// is not after r. The spine is not empty.
func (s *spine) chunkOf(m *members, r row) int {
	i := countBefore(s.heads[1:], r.mark)
	if rest := len(s.heads) - 1 - i; rest > 0 && s.heads[i+1] == r.mark { // it is r's, or r's id decides
		i += sort.Search(rest, func(k int) bool { return s.isAfter(m, i+1+k, r) })
	}
	return i
}

// isAfter says whether chunk i begins after r.
func (s *spine) isAfter(m *members, i int, r row) bool {
	if h := s.heads[i]; h != r.mark {
		return h.before(r.mark) == 0
	}
	return m.before(r, s.chunks[i].row(0))
}

// insert adds r, which is not in the order.
func (o *order) insert(m *members, r row) {
	if len(o.chunks) == 0 {
		o.link(0, &chunk{age: o.age})
	}
	i := o.chunkOf(m, r)
	if o.chunks[i].n == chunkRows {
		if o.split(i); !o.isAfter(m, i+1, r) {
			i++
		}
	}
	c := o.own(i)
	c.insert(c.place(m, r), r)
	o.resized(i)
	o.rows++
}

// remove takes r out, which is in the order.
func (o *order) remove(m *members, r row) {
	i := o.chunkOf(m, r)
	c := o.own(i)
	c.remove(c.place(m, r))
	o.rows--
	if c.n == 0 {
		o.drop(i)
		return
	}
	o.resized(i)
	o.merge(i)
}

// move changes the score of a row: from is in the order, to is the same member.
// Most moves stay in their chunk and cost one copy of it at the most.
func (o *order) move(m *members, from, to row) {
	i := o.chunkOf(m, from)
	if i > 0 && o.isAfter(m, i, to) || i+1 < len(o.heads) && !o.isAfter(m, i+1, to) {
		o.remove(m, from)
		o.insert(m, to)
		return
	}
	c := o.own(i)
	c.move(c.place(m, from), c.place(m, to), to)
	o.resized(i)
}

// own returns chunk i as one that the writer may change.
func (o *order) own(i int) *chunk {
	c := o.chunks[i]
	if c.age != o.age {
		mine := *c
		mine.age = o.age
		c = &mine
		o.chunks[i] = c
	}
	return c
}

// resized writes down what the spine knows of chunk i.
func (o *order) resized(i int) {
	c := o.chunks[i]
	o.counts[i], o.heads[i] = uint32(c.n), c.head()
}

// split moves the second half of chunk i into a new chunk behind it.
func (o *order) split(i int) {
	c, half := o.own(i), chunkRows/2
	tail := &chunk{age: o.age}
	tail.take(c, half, c.n)
	c.cut(half)
	o.resized(i)
	o.link(i+1, tail)
}

// merge joins chunk i with a neighbour if both leave room in one.
func (o *order) merge(i int) {
	if i+1 == len(o.chunks) || i > 0 && o.counts[i-1] < o.counts[i+1] {
		i--
	}
	if i < 0 || o.counts[i]+o.counts[i+1] > chunkFill {
		return
	}
	c, tail := o.own(i), o.chunks[i+1]
	c.take(tail, 0, tail.n)
	o.resized(i)
	o.drop(i + 1)
}

func (o *order) link(i int, c *chunk) {
	o.chunks = slices.Insert(o.chunks, i, c)
	o.heads = slices.Insert(o.heads, i, c.head())
	o.counts = slices.Insert(o.counts, i, uint32(c.n))
}

func (o *order) drop(i int) {
	o.chunks = slices.Delete(o.chunks, i, i+1)
	o.heads = slices.Delete(o.heads, i, i+1)
	o.counts = slices.Delete(o.counts, i, i+1)
}

// freeze hands the order as it is now to readers, and begins a new age.
func (o *order) freeze() ranking {
	o.age++
	return ranking{
		spine:  spine{slices.Clone(o.chunks), slices.Clone(o.heads)},
		starts: starts(o.counts),
		rows:   o.rows,
	}
}

// starts returns how many rows stand before each chunk.
func starts(counts []uint32) []uint32 {
	before := make([]uint32, len(counts))
	var n uint32
	for i, c := range counts {
		before[i] = n
		n += c
	}
	return before
}
