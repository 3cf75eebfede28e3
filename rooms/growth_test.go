package rooms

import (
	"fmt"
	"testing"

	"rankcache"
	"rankcache/internal/testkit"
)

// TestGrowth resolves a file with many boards, each of which lingers beside a lower mode. The steps of its run are counted at two
// sizes: see TestNothingGrowsAsASquare.
func TestGrowth(t *testing.T) {
	f := &File{}
	for i := range testkit.Growth(t) {
		f.Rules = append(f.Rules, Rule{Match: fmt.Sprint("b", i), Mode: ModeHot}, Rule{Match: fmt.Sprint("b", i), Mode: ModeSuperHot, Lingers: true})
	}
	first, lingering := f.Resolve(map[string][]rankcache.BoardID{}).ByPriority(ModeSuperHot)
	if len(first) > 0 || len(lingering) != len(f.Rules)/2 || lingering[1] != "b1" {
		t.Errorf("%d boards linger of %d, and %d do not", len(lingering), len(f.Rules)/2, len(first))
	}
}
