package localboard

import (
	"sync/atomic"

	"rankcache"
)

const (
	// shortTop is how many rows a top has while nobody asks for more. Each publication
	// copies its top, 24 bytes a row, and most pages show 50.
	shortTop = 100
	// longFor is how many publications after the first, and after somebody has asked for
	// more than shortTop rows, still have [rankcache.MaxTop].
	longFor = 64
)

// depth decides how many rows the tops of a board have. The rows beyond are read from the
// ranking.
type depth struct {
	asked atomic.Bool // a page was asked for that a longer top would have had; any goroutine sets it
	long  int         // publications that have long tops yet; the writer's
}

// next returns how many rows the next top has at most.
func (d *depth) next() int {
	if d.asked.Swap(false) {
		d.long = longFor
	}
	if d.long == 0 {
		return shortTop
	}
	d.long--
	return rankcache.MaxTop
}

// ask is called when the first rows of a board up to end were asked for, and its top has fewer.
func (d *depth) ask(end int) {
	if end <= rankcache.MaxTop && !d.asked.Load() {
		d.asked.Store(true)
	}
}
