package localboard

import (
	"sort"

	"rankcache"
)

// ByScore returns how many members have a score from lo to hi, both included, and of
// these at most limit rows from the 0-based offset on, in the given direction; all of
// one moment. The rows are as those of [Board.Page].
func (b *Board) ByScore(lo, hi float64, offset, limit int, direction rankcache.Direction) (page rankcache.Page, total int) {
	v, pinned := b.view.pin()
	if v == nil {
		return rankcache.Page{}, 0
	}
	defer pinned.release()
	first := v.rowsAbove(hi, true)
	total = max(v.rowsAbove(lo, false)-first, 0)
	n := min(limit, total-offset)
	if offset < 0 || n <= 0 {
		return rankcache.Page{Stamp: v.stamp()}, total
	}
	if direction == rankcache.Ascending {
		first = v.rows - first - total
	}
	return v.page(first+offset, n, direction), total
}

// rowsAbove returns how many rows have a score above bound or, unless strict, equal to it.
func (v *view) rowsAbove(bound float64, strict bool) int {
	return sort.Search(v.rows, func(i int) bool {
		var row [1]rankcache.Entry
		v.readEntries(&v.members, row[:], i)
		return row[0].Score < bound || strict && row[0].Score == bound
	})
}
