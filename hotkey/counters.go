package hotkey

import (
	"hash/maphash"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/wire"
)

// 32,768 slots in about 0.9 MiB. With 5,000 boards one bucket in about a million overflows.
const (
	buckets     = 2048 // a power of two
	bucketSlots = 16
	maxNamed    = 8192 // bounds the memory of names: 8,192 of at most 200 bytes
	crowded     = 12   // the number of used slots from which on a bucket frees those of boards without requests
	// takeVotes is how many requests for boards without a slot outweigh one of the board whose slot they would take.
	takeVotes = 8
)

// counters counts requests per board and second. It is exact while every board finds a slot in its bucket, and of fixed
// size: once a bucket is full, requests for boards without a slot are votes, and enough votes replace the bucket's
// coldest board. So in a flood of invented names, busy boards keep or get slots.
//
// A board is identified by its 64-bit hash under a random seed, which callers can't predict; its name is kept only
// after nameAt requests in one second. count and lastSecond may be called by any goroutine; roll by one.
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

// newCounters returns counters that keep the names of boards with at least nameAt requests in one second.
func newCounters(nameAt uint32) *counters {
	return &counters{seed: maphash.MakeSeed(), nameAt: max(nameAt, 1), buckets: make([]bucket, buckets)}
}

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

func (c *counters) lastSecond(board rankcache.BoardID) uint32 {
	b, h := c.bucket(board)
	if i, _ := b.find(h); i >= 0 {
		return b.last[i].Load()
	}
	return 0
}

// roll ends the second and appends the boards with at least minCount requests in it.
func (c *counters) roll(minCount uint32, into []BoardCount) []BoardCount {
	for k := range c.buckets {
		b := &c.buckets[k]
		used := b.used()
		b.votes.Store(0)
		for i := range b.hash {
			n := b.now[i].Load()
			if n != 0 { // most slots have no requests, and a swap costs ten loads
				n = b.now[i].Swap(0)
			}
			if silent := n == 0 && b.last[i].Load() == 0; silent && used >= crowded {
				c.free(b, i, 0)
				continue
			} else if silent && b.name[i].Load() != nil {
				c.forgetName(b, i)
			}
			b.last[i].Store(n)
			if name := b.name[i].Load(); name != nil && n >= minCount && c.ownsSlot(*name, b, i) {
				into = append(into, BoardCount{rankcache.BoardID(*name), int64(n)})
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
// is full and there are enough votes, the coldest; -1 without either.
//
// Two goroutines may take the first slot of the same board at once. Slots are taken in order by compare-and-swap, so
// the loser checks the same slot again and finds its own hash there. Only after a crowded bucket has freed a slot in
// its middle can one board get two; the later one gets no more requests and is freed.
func (c *counters) slotFor(b *bucket, h uint64, full bool) int {
	for i := 0; !full && i < len(b.hash); i++ {
		if b.hash[i].Load() == 0 && b.hash[i].CompareAndSwap(0, h) || b.hash[i].Load() == h {
			return i
		}
	}
	votes := b.votes.Add(1)
	if votes%takeVotes != 0 { // spares most requests the search for the coldest slot
		return -1
	}
	i, weight := b.coldest()
	if uint64(votes) < takeVotes*(uint64(weight)+1) || !b.votes.CompareAndSwap(votes, 0) {
		return -1
	}
	c.free(b, i, h)
	return i
}

// free gives slot i to the board with hash next, or frees it (0). A request under way counts for the new board.
func (c *counters) free(b *bucket, i int, next uint64) {
	c.forgetName(b, i)
	b.hash[i].Store(next)
	b.now[i].Store(0)
	b.last[i].Store(0)
}

// setName keeps a copy of the board's name, as its memory may be the caller's request buffer.
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

// ownsSlot reports whether the slot is still that board's: it may change between the request's search and setName.
func (c *counters) ownsSlot(name string, b *bucket, i int) bool {
	_, h := c.bucket(rankcache.BoardID(name))
	if b.hash[i].Load() == h {
		return true
	}
	c.forgetName(b, i)
	return false
}

// forgetName makes room for another name: there would be none left after as many boards that were busy once.
func (c *counters) forgetName(b *bucket, i int) {
	if b.name[i].Swap(nil) != nil {
		c.named.Add(-1)
	}
}

// find returns the slot of a hash, or -1 and whether all slots are used.
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

// coldest returns the slot with the fewest requests in this second and the one before.
func (b *bucket) coldest() (slot int, weight uint32) {
	weight = ^uint32(0)
	for i := range b.hash {
		if w := b.now[i].Load() + b.last[i].Load(); w < weight {
			slot, weight = i, w
		}
	}
	return slot, weight
}

// OwnRates are the request rates of this sidecar. Count may be called by any goroutine; the other methods by one.
type OwnRates struct {
	counters *counters
	promote  float64 // requests/s from which a board is busy
	elapsed  time.Duration
	named    uint32       // requests in one second from which on a board's name is kept
	read     []BoardCount // of which there were as many in the last second
	busy     []BoardCount
}

// NewOwnRates returns rates of which Roll returns those of promoteRate requests/s or more.
func NewOwnRates(promoteRate float64) *OwnRates {
	named := uint32(min(promoteRate, 2)) // what is read more than once a second is reported
	return &OwnRates{counters: newCounters(named), promote: promoteRate, elapsed: second, named: named}
}

// Count adds one request for the board. It keeps no reference to the id's memory.
func (r *OwnRates) Count(board rankcache.BoardID) { r.counters.count(board) }

// Rate returns the board's requests/s in the last second.
func (r *OwnRates) Rate(board rankcache.BoardID) float64 {
	return float64(r.counters.lastSecond(board)) / r.elapsed.Seconds()
}

// Roll ends a second that took elapsed and returns its busy boards. The slice is valid until the next call.
func (r *OwnRates) Roll(elapsed time.Duration) []BoardCount {
	r.elapsed = elapsed
	r.read, r.busy = r.counters.roll(r.named, r.read[:0]), r.busy[:0]
	for _, b := range r.read {
		if float64(b.Count) >= r.promote*elapsed.Seconds() {
			r.busy = append(r.busy, b)
		}
	}
	return r.busy
}

// Report returns what was read more than once in the last second, but for boards that keep returns false of.
func (r *OwnRates) Report(keep func(rankcache.BoardID) bool) (boards []wire.BoardReads) {
	for _, b := range r.read {
		if rate := float64(b.Count) / r.elapsed.Seconds(); rate > 1 && keep(b.Board) {
			boards = append(boards, wire.BoardReads{Board: b.Board, Rate: uint64(math.Round(rate))})
		}
	}
	return boards
}
