package localboard_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
	"rankcache/localboard"
)

// TestCollectorSums: boards with one label are combined.
func TestCollectorSums(t *testing.T) {
	boards := localboard.NewBoards()
	sum := 0
	for _, id := range []rankcache.BoardID{"a", "b", "c"} {
		sum += boards.Create(id).Bytes()
	}
	c := localboard.Collector(boards, func(rankcache.BoardID) string { return "all" })
	if n := testutil.CollectAndCount(c); n != 1 {
		t.Fatalf("%d series of three boards, want 1", n)
	}
	if got := testutil.ToFloat64(c); got != float64(sum) || sum == 0 {
		t.Errorf("%v bytes, want %d", got, sum)
	}
}
