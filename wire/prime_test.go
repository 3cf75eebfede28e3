package wire

import (
	"strings"
	"testing"

	"rankcache"
)

func TestPrimeOrder(t *testing.T) {
	of := PrimesOf(map[rankcache.BoardID]uint64{"a": 1, "b": 2})
	for what, other := range map[string]map[rankcache.BoardID]uint64{
		"another sum": {"a": 1, "b": 3}, "a board less": {"a": 1}, "sums exchanged": {"a": 2, "b": 1}, "none": nil,
	} {
		if PrimesOf(other) == of {
			t.Errorf("%s has the same digest", what)
		}
	}
	long := strings.Repeat("m", MaxOrderIDLen)
	for _, member := range []string{"a", "a/b", "", long} {
		id := PrimeOrder("20261125", of, member)
		if len(id) > MaxOrderIDLen || !IsPrimeOrder(id, "20261125", member) {
			t.Errorf("order id %q of %.20q", id, member)
		}
		for what, is := range map[string]bool{
			"another tag": IsPrimeOrder(id, "20261126", member), "a longer tag": IsPrimeOrder(id, "20261125/9", member), "another member": IsPrimeOrder(id, "20261125", member+"x"),
			"no digest": IsPrimeOrder("prime/20261125/"+member, "20261125", member), "nothing": IsPrimeOrder("", "20261125", member),
		} {
			if is {
				t.Errorf("%s: %q is taken for the order id of %.20q", what, id, member)
			}
		}
	}
}
