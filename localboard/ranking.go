package localboard

import (
	"slices"

	"rankcache"
)

// ranking is the order of one moment. Nothing in it is ever changed.
type ranking struct {
	spine
	starts []uint32 // rows before each chunk
	rows   int
}

// place returns how many rows stand before r, which is in the ranking.
func (k *ranking) place(m *members, r row) int {
	i := k.chunkOf(m, r)
	return int(k.starts[i]) + k.chunks[i].index(m, r)
}

// read fills dst with the rows from index start on, best first. There must be
// that many.
func (k *ranking) read(m *members, dst []rankcache.Entry, start int) {
	if len(dst) == 0 {
		return
	}
	for c, i := k.locate(start); ; c, i = c+1, 0 {
		n := min(k.chunks[c].n-i, len(dst))
		k.chunks[c].read(m, dst[:n], i)
		if dst = dst[n:]; len(dst) == 0 {
			return
		}
	}
}

// locate returns the chunk, and the row within it, of the row with index i of all.
func (k *ranking) locate(i int) (chunk, row int) {
	chunk, found := slices.BinarySearch(k.starts, uint32(i))
	if !found {
		chunk--
	}
	return chunk, i - int(k.starts[chunk])
}

func (c *chunk) read(m *members, dst []rankcache.Entry, from int) {
	for i := range dst {
		dst[i] = rankcache.Entry{Member: m.at(c.handles[from+i]).name(), Score: c.marks[from+i].value()}
	}
}
