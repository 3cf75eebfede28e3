package localboard

import (
	"sync/atomic"

	"rankcache"
)

const (
	// shortTop is how many rows a top has while nobody asks for more. The first read after each
	// publication copies the top, 24 bytes a row from as many records; most pages show 50.
	shortTop = 64
	longFor  = 64 // how many publications keep [rankcache.MaxTop] rows, at first and after a read beyond a shorter top
)

// depth decides how many rows the tops of a board have. The rows beyond are read from the ranking.
type depth struct {
	asked atomic.Int32 // where the longest page ended that a longer top would have had; any goroutine sets it
	rows  int          // of the next tops; the writer's
	left  int          // how many of those are to come, before short ones; the writer's
}

func newDepth() depth { return depth{rows: rankcache.MaxTop, left: longFor} }

// next returns how many rows the next top has at most.
func (d *depth) next() int {
	if asked := int(d.asked.Swap(0)); asked > 0 {
		d.rows, d.left = asked, longFor
	}
	if d.left == 0 {
		return shortTop
	}
	d.left--
	return d.rows
}

// ask is called when the first rows of a board up to end were asked for, and its top has fewer.
func (d *depth) ask(end int) {
	for end <= rankcache.MaxTop {
		asked := d.asked.Load()
		if int(asked) >= end || d.asked.CompareAndSwap(asked, int32(end)) {
			return
		}
	}
}
