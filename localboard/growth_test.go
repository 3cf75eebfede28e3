package localboard

import (
	"fmt"
	"testing"

	"rankcache"
	"rankcache/internal/testkit"
)

// TestGrowth opens, finds, closes and drops boards. The steps of its run are counted at two sizes: see TestNothingGrowsAsASquare.
func TestGrowth(t *testing.T) {
	boards := NewBoards()
	for i := range testkit.Growth(t) {
		id := rankcache.BoardID(fmt.Sprint("b", i))
		boards.Create(id)
		boards.Open(id)
		if b, ok := boards.Get(id); !ok || b.ID() != id {
			t.Fatal("an open board is not found")
		}
	}
	if allocs := testing.AllocsPerRun(100, func() { boards.Get("b1") }); allocs > 0 {
		t.Errorf("a look-up allocates %v times", allocs)
	}
	for _, b := range boards.All() {
		boards.Close(b.ID())
		boards.Drop(b.ID())
	}
	if n := len(boards.All()); n > 0 {
		t.Errorf("%d boards are left", n)
	}
}
