package profile

import "sync/atomic"

// groupBits is the size of the change counters: 16,384 groups, 64 KiB, which
// stays in a core's cache. More groups, fewer pages encoded anew for a stranger.
const groupBits = 14

// changes counts how often a profile was stored or dropped: of all members, and
// per group of members. It outlives the entries: a member that was evicted and
// loaded again, or refused by the cache, has still changed.
type changes struct {
	all    atomic.Uint64 // bumped after the group
	groups [1 << groupBits]atomic.Uint32
}

func group(key uint64) uint32 { return uint32(key >> (64 - groupBits)) } // the shards of the store use the low bits

func (c *changes) count(key uint64) uint32 { return c.groups[group(key)].Load() }

// bump is called after the store was changed.
func (c *changes) bump(key uint64) {
	c.groups[group(key)].Add(1)
	c.all.Add(1)
}
