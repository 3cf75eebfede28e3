package live

import (
	"testing"

	"rankcache/internal/testkit"
)

// TestGrowth has many pages of one board begin and end. The steps of its run are counted at two sizes: see
// TestNothingGrowsAsASquare.
func TestGrowth(t *testing.T) {
	w := newWorld(t, Config{})
	h := w.hub.Load()
	var all []*publisher
	for i := range testkit.Growth(t) {
		p, err := h.join(Key{Board: board, Limit: i + 1})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	h.Changed(board)
	for _, p := range all {
		h.leave(p)
		h.remove(p)
	}
	if len(h.byBoard)+len(h.publishers) > 0 {
		t.Errorf("%d boards and %d publishers are left", len(h.byBoard), len(h.publishers))
	}
}
