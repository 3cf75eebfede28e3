package resp

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// named knows when members of boards were last written through this process by commands that the script ran: until the
// copies are newer, reads of them on all connections go to Redis. Members share places by their hash: then a read is
// passed on that need not be.
type named struct {
	began time.Time
	at    [namedPlaces]atomic.Int64 // nanoseconds since began
}

const namedPlaces = 1 << 14

func namedPlace(key, member []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = h.Write(key)
	_, _ = h.Write(member)
	return h.Sum64() % namedPlaces
}

// written takes note of writes that Redis has answered.
func (n *named) written(all []uint64) {
	now := int64(time.Since(n.began))
	for _, p := range all {
		n.at[p].Store(now)
	}
}

// after reports whether a write to a member that the read names may be later than a copy that was current at a time.
func (n *named) after(q *form, currentAt time.Time) bool {
	if n == nil {
		return false
	}
	for _, m := range q.members {
		if last := n.at[namedPlace(q.key, m)].Load(); last > 0 && last >= int64(currentAt.Sub(n.began)) {
			return true
		}
	}
	return false
}
