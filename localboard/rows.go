package localboard

// pieceRows are allocated and sorted at once: one piece for 2,000,000 rows would stop the runtime for 50 ms.
const pieceRows = 32 << 10

type rowPieces [][]row // the rows of a whole board, unsorted

func (p *rowPieces) add(r row, most int) {
	last := len(*p) - 1
	if last < 0 || len((*p)[last]) == pieceRows {
		*p = append(*p, make([]row, 0, min(pieceRows, most)))
		last++
	}
	(*p)[last] = append((*p)[last], r)
}

// sorted sorts each piece and then yields all rows, best first. The pieces are a heap by their first rows.
func (p rowPieces) sorted(m *members) func(func(row) bool) {
	return func(yield func(row) bool) {
		for _, piece := range p {
			m.sort(piece)
		}
		for i := len(p)/2 - 1; i >= 0; i-- {
			p.down(m, i)
		}
		for len(p) > 0 {
			if !yield(p[0][0]) {
				return
			}
			if p[0] = p[0][1:]; len(p[0]) == 0 {
				last := len(p) - 1
				p[0], p = p[last], p[:last]
			}
			p.down(m, 0)
		}
	}
}

// down moves piece i to its place in the heap.
func (p rowPieces) down(m *members, i int) {
	for {
		best := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(p); child++ {
			if m.before(p[child][0], p[best][0]) {
				best = child
			}
		}
		if best == i {
			return
		}
		p[i], p[best] = p[best], p[i]
		i = best
	}
}
