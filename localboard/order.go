package localboard

import (
	"slices"
	"sort"
)

// order is the writer's ordered set: shelves of chunks of rows, best first. What
// was frozen into a ranking it never changes, but replaces it by a copy: of a
// chunk that is touched and of the shelf that it stands in.
type order struct {
	spine
	counts []uint32 // rows of each shelf
	rows   int
	age    uint64 // of the coming publication; what is of this age is the writer's
	spares *spares
}

// spine is where a search begins. No shelf in it is empty.
type spine struct {
	shelves []*shelf
	heads   []mark // of the first row of each shelf
}

// shelfOf returns the shelf that r is in, or belongs in: the last one whose head
// is not after r, or the first. The spine is not empty.
func (s *spine) shelfOf(m *members, r row) int {
	i := countBefore(s.heads[1:], r.mark)
	if rest := len(s.heads) - 1 - i; rest > 0 && s.heads[i+1] == r.mark { // it is r's, or r's id decides
		i += sort.Search(rest, func(k int) bool { return s.isAfter(m, i+1+k, r) })
	}
	return i
}

// isAfter says whether shelf i begins after r.
func (s *spine) isAfter(m *members, i int, r row) bool {
	if h := s.heads[i]; h != r.mark {
		return h.before(r.mark) == 0
	}
	return m.before(r, s.shelves[i].first())
}

// all yields every row, best first.
func (s *spine) all(yield func(row) bool) {
	for c := range s.chunks {
		for i := range c.n {
			if !yield(c.row(i)) {
				return
			}
		}
	}
}

// chunks yields every chunk, best first.
func (s *spine) chunks(yield func(*chunk) bool) {
	for _, shelf := range s.shelves {
		for _, c := range shelf.chunks[:shelf.n] {
			if !yield(c) {
				return
			}
		}
	}
}

// insert adds r, which is not in the order.
func (o *order) insert(m *members, r row) {
	if len(o.shelves) == 0 {
		o.shelves, o.heads, o.counts = []*shelf{{age: o.age, spares: o.spares}}, []mark{{}}, []uint32{0}
	}
	i := o.shelfOf(m, r)
	if o.shelves[i].n == shelfChunks {
		if o.split(i); !o.isAfter(m, i+1, r) {
			i++
		}
	}
	o.own(i).insert(m, r)
	o.rows++
	o.resized(i)
}

// remove takes r out, which is in the order.
func (o *order) remove(m *members, r row) {
	i := o.shelfOf(m, r)
	s := o.own(i)
	s.remove(m, r)
	o.rows--
	if s.n == 0 {
		o.drop(i)
		return
	}
	o.resized(i)
	o.merge(i)
}

// move changes the score of a row: from is in the order, to is the same member.
// Most moves stay in their chunk and cost one copy of it at the most.
func (o *order) move(m *members, from, to row) {
	i := o.shelfOf(m, from)
	stays := (i == 0 || !o.isAfter(m, i, to)) && (i+1 == len(o.heads) || o.isAfter(m, i+1, to))
	if stays && o.own(i).move(m, from, to) {
		o.heads[i] = o.shelves[i].head()
		return
	}
	o.remove(m, from)
	o.insert(m, to)
}

// own returns shelf i as one that the writer may change.
func (o *order) own(i int) *shelf {
	s := o.shelves[i]
	if s.age != o.age {
		s = o.spares.copyShelf(s)
		s.age = o.age
		o.shelves[i] = s
	}
	return s
}

// resized writes down what the spine knows of shelf i.
func (o *order) resized(i int) {
	s := o.shelves[i]
	o.counts[i], o.heads[i] = uint32(s.rows()), s.head()
}

// split moves the second half of shelf i into a new shelf behind it.
func (o *order) split(i int) {
	s, half := o.own(i), shelfChunks/2
	tail := &shelf{age: o.age, spares: o.spares}
	tail.take(s, half, s.n)
	s.unlink(half, s.n)
	o.resized(i)
	o.link(i+1, tail)
}

// merge joins shelf i with a neighbour if both leave room in one.
func (o *order) merge(i int) {
	if i+1 == len(o.shelves) || i > 0 && o.shelves[i-1].n < o.shelves[i+1].n {
		i--
	}
	if i < 0 || o.shelves[i].n+o.shelves[i+1].n > shelfFill {
		return
	}
	s, tail := o.own(i), o.shelves[i+1]
	s.take(tail, 0, tail.n)
	o.resized(i)
	o.drop(i + 1)
}

func (o *order) link(i int, s *shelf) {
	o.shelves = slices.Insert(o.shelves, i, s)
	o.heads = slices.Insert(o.heads, i, s.head())
	o.counts = slices.Insert(o.counts, i, uint32(s.rows()))
}

func (o *order) drop(i int) {
	o.shelves = slices.Delete(o.shelves, i, i+1)
	o.heads = slices.Delete(o.heads, i, i+1)
	o.counts = slices.Delete(o.counts, i, i+1)
}

// freeze hands the order as it is now to readers, and begins a new age.
func (o *order) freeze() ranking {
	o.age++
	room := o.spares.makeRoom()
	room.shelves = append(room.shelves[:0], o.shelves...)
	room.heads = append(room.heads[:0], o.heads...)
	room.starts = appendStarts(room.starts[:0], o.counts)
	return ranking{
		room:   room,
		rows:   o.rows,
		age:    o.age - 1,
		holds:  new(holds),
		spares: o.spares,
	}
}

// appendStarts appends how many rows stand before each shelf.
func appendStarts(before, counts []uint32) []uint32 {
	var n uint32
	for _, c := range counts {
		before = append(before, n)
		n += c
	}
	return before
}
