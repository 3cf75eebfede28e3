package hotkey

import (
	"hash/maphash"
	"strings"
	"sync/atomic"

	"rankcache"
)

// The size of the counters: 32,768 slots in about 0.9 MiB. 5,000 boards leave
// buckets 2.4 of 16 full on average; that one overflows is about 1 in a million.
const (
	buckets     = 2048 // a power of two
	bucketSlots = 16
	// maxNamed bounds the memory of names: 8,192 of at most 200 bytes.
	maxNamed = 8192
	// crowded is when a bucket gives up the slots of boards that are silent.
	// Below it nothing is ever given up, which keeps the counts exact.
	crowded = 12
	// takeVotes is how many requests for boards without a slot weigh as much as
	// one counted request of the slot that they would take.
	takeVotes = 8
)

// counters counts requests per board and second. It is exact while every board
// finds a slot in its bucket, and of fixed size: once a bucket is full, boards
// without a slot vote, and enough votes take the slot of the bucket's coldest
// board. Under a flood of made-up names the busy boards thus keep or win slots
// while the names pass through.
//
// A board is its 64-bit hash under a random seed, which callers can't aim at;
// its name is kept only once it has been asked for nameAt times in one second.
// count and last may be called by any goroutine; roll only by one.
type counters struct {
	seed    maphash.Seed
	nameAt  uint32
	named   atomic.Int64
	buckets []bucket
}

// bucket is 7 cache lines; hashes come first because a search reads only them.
type bucket struct {
	hash  [bucketSlots]atomic.Uint64 // 0: free
	now   [bucketSlots]atomic.Uint32 // requests in this second
	last  [bucketSlots]atomic.Uint32 // requests in the second before
	name  [bucketSlots]atomic.Pointer[string]
	votes atomic.Uint32 // requests of this second that found no slot
	_     [60]byte
}

// newCounters returns counters that know the names of boards asked for at least
// nameAt times in one second.
func newCounters(nameAt uint32) *counters {
	return &counters{seed: maphash.MakeSeed(), nameAt: max(nameAt, 1), buckets: make([]bucket, buckets)}
}

// count adds one request for the board.
func (c *counters) count(board rankcache.BoardID) {
	b, h := c.bucket(board)
	i, full := b.find(h)
	if i < 0 {
		if i = c.slotFor(b, h, full); i < 0 {
			return
		}
	}
	if b.now[i].Add(1) == c.nameAt && b.name[i].Load() == nil {
		c.setName(b, i, board)
	}
}

// lastSecond returns the board's requests in the second before the last roll.
func (c *counters) lastSecond(board rankcache.BoardID) uint32 {
	b, h := c.bucket(board)
	if i, _ := b.find(h); i >= 0 {
		return b.last[i].Load()
	}
	return 0
}

// boardCount is one board's requests in one second.
type boardCount struct {
	board rankcache.BoardID
	n     uint32
}

// roll ends the second and appends the boards that were asked for at least
// least times in it.
func (c *counters) roll(least uint32, into []boardCount) []boardCount {
	for k := range c.buckets {
		b := &c.buckets[k]
		used := b.used()
		b.votes.Store(0)
		for i := range b.hash {
			n := b.now[i].Load()
			if n != 0 { // most slots are silent, and a swap costs ten loads
				n = b.now[i].Swap(0)
			}
			if silent := n == 0 && b.last[i].Load() == 0; silent && used >= crowded {
				c.free(b, i, 0)
				continue
			}
			b.last[i].Store(n)
			if name := b.name[i].Load(); name != nil && n >= least && c.names(*name, b, i) {
				into = append(into, boardCount{rankcache.BoardID(*name), n})
			}
		}
	}
	return into
}

func (c *counters) bucket(board rankcache.BoardID) (*bucket, uint64) {
	h := max(maphash.String(c.seed, string(board)), 1)
	return &c.buckets[h%buckets], h
}

// slotFor returns a slot for a board that has none: a free one or, if the bucket
// is full and for enough votes, the coldest; -1 when it has to wait.
//
// Two goroutines may want the first slot of the same board at once. Slots are
// taken in order by compare-and-swap, so the loser looks at the same slot again
// and finds its own hash there. Only after a crowded bucket has freed a slot in
// its middle can one board get two; the later one falls silent and is freed.
func (c *counters) slotFor(b *bucket, h uint64, full bool) int {
	for i := 0; !full && i < len(b.hash); i++ {
		if b.hash[i].Load() == 0 && b.hash[i].CompareAndSwap(0, h) || b.hash[i].Load() == h {
			return i
		}
	}
	votes := b.votes.Add(1)
	if votes%takeVotes != 0 { // the coldest slot is looked for only now and then
		return -1
	}
	i, weight := b.coldest()
	if uint64(votes) < takeVotes*(uint64(weight)+1) || !b.votes.CompareAndSwap(votes, 0) {
		return -1
	}
	c.free(b, i, h)
	return i
}

// free gives slot i to the board with hash next, or to nobody (0). A request for
// the old board that has just found the slot is counted for the new one.
func (c *counters) free(b *bucket, i int, next uint64) {
	if b.name[i].Swap(nil) != nil {
		c.named.Add(-1)
	}
	b.hash[i].Store(next)
	b.now[i].Store(0)
	b.last[i].Store(0)
}

// setName keeps a copy of the board's name, as its memory may be the caller's
// request buffer.
func (c *counters) setName(b *bucket, i int, board rankcache.BoardID) {
	if c.named.Add(1) > maxNamed {
		c.named.Add(-1)
		return
	}
	name := strings.Clone(string(board))
	if !b.name[i].CompareAndSwap(nil, &name) {
		c.named.Add(-1)
	}
}

// names reports whether the slot still belongs to the board of that name: the
// slot may have been taken between the request's search and its naming.
func (c *counters) names(name string, b *bucket, i int) bool {
	_, h := c.bucket(rankcache.BoardID(name))
	if b.hash[i].Load() == h {
		return true
	}
	if b.name[i].Swap(nil) != nil {
		c.named.Add(-1)
	}
	return false
}

// find returns the slot of a hash, -1 without one, and then whether no slot is
// free.
func (b *bucket) find(h uint64) (slot int, full bool) {
	full = true
	for i := range b.hash {
		switch b.hash[i].Load() {
		case h:
			return i, false
		case 0:
			full = false
		}
	}
	return -1, full
}

func (b *bucket) used() (n int) {
	for i := range b.hash {
		if b.hash[i].Load() != 0 {
			n++
		}
	}
	return n
}

// coldest returns the slot with the fewest requests in this second and the one
// before: right after a roll, this second alone would say nothing.
func (b *bucket) coldest() (slot int, weight uint32) {
	weight = ^uint32(0)
	for i := range b.hash {
		if w := b.now[i].Load() + b.last[i].Load(); w < weight {
			slot, weight = i, w
		}
	}
	return slot, weight
}
