package localboard

import (
	"encoding/binary"
	"math"
	"strings"
)

// prefixSample is how many members are looked at to find the beginning that
// most ids share. With fewer members none is taken.
const prefixSample = 64

// key returns 8 bytes of id as a number that sorts as ids do: if one id sorts
// before another, its key is not the greater. It decides nearly all ties between
// equal scores without a look at the ids. An id without the common prefix sorts
// before or after all that have it, and its key says no more than that.
func (m *members) key(id string) uint64 {
	rest, ok := strings.CutPrefix(id, m.prefix)
	if !ok {
		if id < m.prefix {
			return 0
		}
		return math.MaxUint64
	}
	if len(rest) >= 8 {
		return binary.BigEndian.Uint64([]byte(rest[:8]))
	}
	var k uint64
	for i := range len(rest) {
		k |= uint64(rest[i]) << (56 - 8*i)
	}
	return k
}

// commonPrefix returns what the ids of a sample have in common. Any answer is
// correct; a good one makes keys tell more. The table, being sorted by hash, is
// where a fair sample is found.
func (m *members) commonPrefix() string {
	if m.count < prefixSample {
		return ""
	}
	prefix, all := "", m.table.slots
	for i := range prefixSample {
		at := i * len(all) / prefixSample
		for all[at].entry.Load() == 0 {
			at = m.table.next(at)
		}
		id := m.at(uint32(all[at].entry.Load()) - 1).name()
		if i == 0 {
			prefix = id
		}
		prefix = prefix[:shared(prefix, id)]
	}
	return strings.Clone(prefix) // not to keep the id's block
}

// shared returns how many leading bytes a and b have in common.
func shared(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
