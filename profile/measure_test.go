package profile

import (
	"fmt"
	"testing"

	"rankcache/internal/testkit"
)

// The hit ratio comes within three points of an exact LRU of as many entries;
// as a rule it is better, because a member that is seen once does not push out
// one that is seen often.
func TestHitRatio(t *testing.T) {
	if raceOn {
		t.Skip("under the race detector a sync.Pool forgets a quarter of what it is given, and with it most lookups that ristretto would learn from")
	}
	tr := trace{budget: 4 << 20, pages: 6_000, members: 100_000}
	if testkit.Full() {
		tr = trace{budget: 16 << 20, pages: 80_000, members: 1_000_000}
	}
	var f Figures
	if err := measureTrace(t.Context(), &f, tr); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.3f, an LRU %.3f", f.HitRatio, f.HitRatioLRU)
	if f.HitRatio < f.HitRatioLRU-0.03 {
		t.Errorf("hit ratio %.3f, of an LRU %.3f, want at most 0.03 less", f.HitRatio, f.HitRatioLRU)
	}
}

// Entries come and go many times over, which is when Go's maps take the most. In
// full size it has a run without the race detector, which makes it take a quarter
// of an hour.
func TestMemoryStaysWithinBudget(t *testing.T) {
	asked, budgets := 160_000, []int64{8 << 20}
	if testkit.Full() && !raceOn {
		asked, budgets = 1_000_000, []int64{16 << 20, 48 << 20, DefaultBudget}
	}
	for _, budget := range budgets {
		t.Run(fmt.Sprint(budget>>20, " MiB"), func(t *testing.T) {
			before := liveHeap()
			err := measured(t.Context(), Options{Budget: budget}, &measuredSource{}, func(c *Cache) error {
				dst := make([][]byte, measuredRows)
				for n := range asked / measuredRows {
					if missing := c.Get(t.Context(), page(n), dst); missing != 0 {
						t.Fatalf("missing %d", missing)
					}
					if n%(asked/measuredRows/8) == 0 {
						checkHeap(t, liveHeap()-before, budget)
					}
				}
				took := liveHeap() - before
				checkHeap(t, took, budget)
				t.Logf("%.2f of the budget after %d members, %d entries", float64(took)/float64(budget), asked, c.store.Load().entries())
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func checkHeap(t *testing.T, took, budget int64) {
	t.Helper()
	if float64(took) > 1.2*float64(budget) {
		t.Fatalf("%d bytes of heap for a budget of %d, want at most 1.2 times that", took, budget)
	}
}
