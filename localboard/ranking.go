package localboard

import (
	"slices"

	"rankcache"
)

// ranking is the order of one moment. Nothing in it is changed while anybody may
// read it; see holds.
type ranking struct {
	room
	rows   int
	age    uint64 // of the youngest chunk and shelf in it, at the most
	holds  *holds
	spares *spares // of the order that it is of: those of another have nothing of it
}

// room is what a ranking shares with no other.
type room struct {
	spine
	starts []uint32 // rows before each shelf
}

// place returns how many rows stand before r, which is in the ranking.
func (k *ranking) place(m *members, r row) int {
	i := k.shelfOf(m, r)
	s := k.shelves[i]
	j := s.chunkOf(m, r)
	return int(k.starts[i]+s.starts[j]) + s.chunks[j].index(m, r)
}

// read fills dst with the rows from index start on, best first. There must be
// that many.
func (k *ranking) read(m *members, dst []rankcache.Entry, start int) {
	if len(dst) == 0 {
		return
	}
	i, found := slices.BinarySearch(k.starts, uint32(start))
	if !found {
		i--
	}
	c, from := k.shelves[i].locate(start - int(k.starts[i]))
	for ; len(dst) > 0; i, c = i+1, 0 {
		s := k.shelves[i]
		for ; c < s.n && len(dst) > 0; c, from = c+1, 0 {
			n := min(s.chunks[c].n-from, len(dst))
			s.chunks[c].read(m, dst[:n], from)
			dst = dst[n:]
		}
	}
}

func (c *chunk) read(m *members, dst []rankcache.Entry, from int) {
	for i := range dst {
		dst[i] = rankcache.Entry{Member: m.at(c.handles[from+i]).name(), Score: c.marks[from+i].value()}
	}
}
