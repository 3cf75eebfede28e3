package rankcache_test

import (
	"slices"
	"testing"
	"time"

	"rankcache"
)

func TestCompareStatus(t *testing.T) {
	const open = rankcache.StateOpen
	want := []rankcache.BoardStatus{
		{Board: "given up", State: rankcache.StateGivenUp, Members: 3, Want: 9},
		{Board: "stale", State: rankcache.StateStale, Members: 1},
		{Board: "filling", State: rankcache.StateReplaying, Members: 90},
		{Board: "old", State: open, Members: 2, Age: time.Minute},
		{Board: "not begun", State: rankcache.StateGivenUp},
		{Board: "large", State: open, Members: 5000, Age: time.Second},
		{Board: "small", State: open, Members: 40},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortStableFunc(got, func(a, b rankcache.BoardStatus) int { return rankcache.CompareStatus(&a, &b) })
	for i := range want {
		if got[i].Board != want[i].Board {
			t.Errorf("place %d: %s, want %s", i, got[i].Board, want[i].Board)
		}
	}
	a, b := rankcache.BoardStatus{State: open, Members: 1000}, rankcache.BoardStatus{State: open, Members: 1001}
	if rankcache.CompareStatus(&a, &b) != 0 {
		t.Error("one more member changes the order")
	}
}
