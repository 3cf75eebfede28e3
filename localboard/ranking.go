package localboard

import (
	"slices"
	"unsafe"

	"rankcache"
)

// ranking is an immutable version of the index.
type ranking struct {
	root
	starts []uint32 // rows before each inner node
	rows   int
}

// ownBytes is the memory that the ranking shares with no other version.
func (k *ranking) ownBytes() int {
	return cap(k.children)*8 + cap(k.keys)*int(unsafe.Sizeof(sortKey{})) + cap(k.starts)*4
}

// rowsBefore returns how many rows stand before r, which is in the ranking.
func (k *ranking) rowsBefore(m *members, r row) int {
	i := k.childFor(m, r)
	in := k.children[i]
	j := in.childFor(m, r)
	return int(k.starts[i]+in.starts[j]) + in.leaves[j].indexOf(m, r)
}

// keysBefore returns how many rows have a sort key that stands before a.
func (k *ranking) keysBefore(a sortKey) int {
	if k.rows == 0 {
		return 0
	}
	i := countBefore(k.keys[1:], a)
	in := k.children[i]
	j := max(countInNode(&in.keys, a), 1) - 1
	return int(k.starts[i]+in.starts[j]) + countInNode(&in.leaves[j].keys, a)
}

// readEntries fills dst with the rows from start on, best first. There must be that many.
func (k *ranking) readEntries(m *members, dst []rankcache.Entry, start int) {
	if len(dst) == 0 {
		return
	}
	i, found := slices.BinarySearch(k.starts, uint32(start))
	if !found {
		i--
	}
	l, from := k.children[i].locate(start - int(k.starts[i]))
	for ; len(dst) > 0; i, l = i+1, 0 {
		in := k.children[i]
		for ; l < in.n && len(dst) > 0; l, from = l+1, 0 {
			n := min(in.leaves[l].n-from, len(dst))
			in.leaves[l].readEntries(m, dst[:n], from)
			dst = dst[n:]
		}
	}
}

func (l *leaf) readEntries(m *members, dst []rankcache.Entry, from int) {
	for i := range dst {
		dst[i] = rankcache.Entry{Member: m.at(l.handles[from+i]).id(), Score: l.keys[from+i].value()}
	}
}

// distinct returns how many scores the rows have from index from to before to. It reads all of them.
func (k *ranking) distinct(from, to int, form rankcache.ScoreForm) (n int) {
	var last uint64 // no row's
	for from < to {
		keys := k.keysFrom(from)
		keys = keys[:min(len(keys), to-from)]
		for i := range keys {
			if k := &keys[i]; k.score != last {
				if last == 0 || !form.Integer() || !form.Same(k.value(), sortKey{score: last}.value()) {
					n++
				}
				last = k.score
			}
		}
		from += len(keys)
	}
	return n
}

// scoreOf returns the score of a row by its index, best first.
func (k *ranking) scoreOf(row int) float64 { return k.keysFrom(row)[0].value() }

// keysFrom returns the sort keys of a row by its index, and of those behind it in its leaf.
func (k *ranking) keysFrom(row int) []sortKey {
	i, found := slices.BinarySearch(k.starts, uint32(row))
	if !found {
		i--
	}
	in := k.children[i]
	l, at := in.locate(row - int(k.starts[i]))
	return in.leaves[l].keys[at:in.leaves[l].n]
}
