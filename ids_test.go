package rankcache_test

import (
	"strings"
	"testing"

	"rankcache"
)

func TestParseBoardID(t *testing.T) {
	for _, good := range []string{"1_2_3", "A.z:0-9", "rankcache", "rankcache-1", "a:rankcache:1", strings.Repeat("x", rankcache.MaxBoardLen)} {
		if _, err := rankcache.ParseBoardID(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "a b", "{a}", "a/b", "ü", "rankcache:", "rankcache:rooms", strings.Repeat("x", rankcache.MaxBoardLen+1)} {
		if _, err := rankcache.ParseBoardID(bad); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}
