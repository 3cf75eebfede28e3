package rankcache_test

import (
	"strings"
	"testing"

	"rankcache"
)

func TestParseBoardID(t *testing.T) {
	for _, good := range []string{"1_2_3", "A.z:0-9", "rankcache", "rankcache-1", "a:rankcache:1", "{a}", "lb:{eu}:weekly", "a}{b}"[2:], "a/b#c@d|e=f+g,h~i$j!", strings.Repeat("x", rankcache.MaxBoardLen)} {
		if _, err := rankcache.ParseBoardID(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "a b", "a\tb", "a\x7f", "a\"b", "a'b", "a`b", `a\b`, "a*", "a?", "[a]", "<a>", "a%", "{}", "a{}b", "{a", "a}", "a}{b}", "ü", "rankcache:", "rankcache:rooms", strings.Repeat("x", rankcache.MaxBoardLen+1)} {
		if _, err := rankcache.ParseBoardID(bad); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}
