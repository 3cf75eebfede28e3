package measure

import (
	"testing"

	"rankcache/internal/testkit/kit"
)

// The hit ratio comes within three points of an exact LRU of as many entries;
// usually it is better, because a member that is read once does not evict one
// that is read often.
func TestHitRatio(t *testing.T) {
	if kit.Race {
		t.Skip("under the race detector a sync.Pool drops a quarter of its items, and with them most lookups from which ristretto learns")
	}
	tr := trace{budget: 4 << 20, pages: 6_000, members: 100_000}
	if kit.Full() {
		tr = trace{budget: 16 << 20, pages: 80_000, members: 1_000_000}
	}
	var f ProfileFigures
	if err := measureTrace(t.Context(), &f, tr); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.3f, an LRU %.3f", f.HitRatio, f.HitRatioLRU)
	if f.HitRatio < f.HitRatioLRU-0.03 {
		t.Errorf("hit ratio %.3f, of an LRU %.3f, want at most 0.03 less", f.HitRatio, f.HitRatioLRU)
	}
}
