package localboard

import (
	"math"
	"math/bits"
)

// mark is what a row sorts by: the score and the sort key of the id, both as
// numbers of which the greater stands first. Rows of different members rarely
// have the same mark; those that do sort by their ids.
//
// The zero mark stands behind that of every row: no score maps to 0.
type mark struct{ score, key uint64 }

func newMark(score float64, key uint64) mark { return mark{sortable(score), key} }

// sortable returns a number that is greater for the greater score. score is no
// NaN and no -0.
func sortable(score float64) uint64 {
	b := math.Float64bits(score)
	return b ^ (uint64(int64(b)>>63) | 1<<63)
}

// value returns the score again.
func (a mark) value() float64 {
	return math.Float64frombits(a.score ^ (^uint64(int64(a.score)>>63) | 1<<63))
}

// before returns 1 if a stands before b, else 0. It subtracts instead of
// branching: where a search goes next can't be guessed, and a wrong guess costs
// more than the comparison.
func (a mark) before(b mark) int {
	_, borrow := bits.Sub64(b.key, a.key, 0)
	_, borrow = bits.Sub64(b.score, a.score, borrow)
	return int(borrow)
}

// countBefore returns how many of marks, which are sorted, stand before a. It
// halves them as often whatever it finds, for the same reason.
func countBefore(marks []mark, a mark) int {
	from, n := 0, len(marks)
	for n > 0 {
		half := (n + 1) / 2
		from += half & -marks[from+half-1].before(a)
		n -= half
	}
	return from
}

// nodeMarks is how many marks a node of the order holds at most: with 31 a chunk
// makes 640 bytes and a shelf 896, two of the allocator's sizes. Chosen by
// measurement of standings in a server (rankcache bench read): 1.27 and 1.34 times
// the fixed body over TCP and Unix socket, with 63 1.28 and 1.37, with 15 1.30 and
// 1.35. The processor has some ten lines under way from memory at once; a chunk of 31
// has eight. What a publication costs hardly differs (BenchmarkPublish).
const nodeMarks = 31

// lineMarks is how many marks share a cache line.
const lineMarks = 4

// countInNode is countBefore for the marks of a node, of which those that are
// not in use are zero. It looks at the last mark of every cache line, all at
// once, and then into one line that has come already.
func countInNode(marks *[nodeMarks]mark, a mark) int {
	lines := 0
	for i := lineMarks - 1; i < nodeMarks; i += lineMarks {
		lines += marks[i].before(a)
	}
	n := lines * lineMarks
	line := marks[n : n+lineMarks-1]
	for i := range line {
		n += line[i].before(a)
	}
	return n
}
