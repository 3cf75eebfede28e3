package rankcache_test

import (
	"strings"
	"testing"

	"rankcache"
)

func TestParseBoardID(t *testing.T) {
	for _, good := range []string{"1_2_3", "A.z:0-9", strings.Repeat("x", rankcache.MaxBoardLen)} {
		if _, err := rankcache.ParseBoardID(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "a b", "{a}", "a/b", "ü", strings.Repeat("x", rankcache.MaxBoardLen+1)} {
		if _, err := rankcache.ParseBoardID(bad); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}
