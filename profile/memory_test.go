package profile

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"rankcache/internal/testkit"
)

// Entries come and go many times over, which is when Go's maps take the most. In
// full size it has a run without the race detector, which makes it take a quarter
// of an hour.
func TestMemoryStaysWithinBudget(t *testing.T) {
	loaded, budgets := 160_000, []int64{8 << 20}
	if testkit.Full() && !testkit.Race {
		loaded, budgets = 500_000, []int64{16 << 20, 48 << 20, DefaultBudget}
	}
	for _, budget := range budgets {
		t.Run(fmt.Sprint(budget>>20, " MiB"), func(t *testing.T) {
			before := liveHeap()
			c := start(t, Options{Budget: budget, Deadline: 10 * time.Second}, allKnown{})
			dst := make([][]byte, pageRows)
			for n := range loaded / pageRows {
				if missing := c.Get(t.Context(), page(n), dst); missing != 0 {
					t.Fatalf("missing %d", missing)
				}
				if n%(loaded/pageRows/8) == 0 {
					checkHeap(t, liveHeap()-before, budget)
				}
			}
			took := liveHeap() - before
			checkHeap(t, took, budget)
			t.Logf("%.2f of the budget after %d members, %d entries", float64(took)/float64(budget), loaded, c.Len())
		})
	}
}

func checkHeap(t *testing.T, took, budget int64) {
	t.Helper()
	if float64(took) > 1.2*float64(budget) {
		t.Fatalf("%d bytes of heap for a budget of %d, want at most 1.2 times that", took, budget)
	}
}

const pageRows = 50

// allKnown has a profile of 150 bytes of every member.
type allKnown struct{}

func (allKnown) Load(_ context.Context, members []string, answers []Answer) error {
	for i, member := range members {
		answers[i].JSON = fmt.Appendf(nil, `{"nick":"nick of %s","avatar":"https://img.example/%086d.webp"}`, member, i)
	}
	return nil
}

// page returns the members of page n. No two pages have a member in common.
func page(n int) []string {
	members := make([]string, pageRows)
	for i := range members {
		members[i] = strconv.Itoa(1e9 + n*pageRows + i)
	}
	return members
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // the second empties sync.Pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
