package profile

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// Heap of an entry beside its slab, and of an empty cache. TestMemoryStaysWithinBudget compares them.
const (
	slotCost = 176 // the entry's place in ristretto's two maps: 131 bytes in a full cache of 64 MiB, up to 229 later
	// typicalEntry is the expected cost of an entry, all included, from which the number of frequency counters follows.
	typicalEntry     = 352
	countersPerEntry = 4       // trades the memory of the counters (4 bytes each) for a better choice of what to keep
	emptyCost        = 1 << 20 // ristretto's buffer of writes, its empty maps, and the map of flights
	getBuffer        = 64      // how many lookups are batched before their counters are raised
)

// item is an entry on its way into the store.
type item struct {
	key uint64
	e   entry
}

type ristrettoCache = ristretto.Cache[uint64, handle] // maps the hash of a member to the place of its entry

// store keeps entries in slabs, and their places in ristretto. Any goroutine may get and lookup, one at a time put and
// remove, which return when they are applied, so that no write is dropped or overtaken although ristretto's are hints.
// One that is not open has no entries.
type store struct {
	opts      Options
	evicted   func()
	seed      maphash.Seed // of the keys: callers can't choose members whose keys collide
	slabs     *slabs
	cache     atomic.Pointer[ristrettoCache] // nil unless the store is open
	revisions revisions
}

// newStore returns a store for entries of opts.Budget bytes, overhead included. It is not open.
func newStore(opts Options, evicted func()) *store {
	return &store{opts: opts, evicted: evicted, seed: maphash.MakeSeed(), slabs: newSlabs()}
}

func (s *store) open() error {
	counters := counters(s.opts.Budget)
	overhead := counterBytes(counters) + emptyCost + spareWords*wordBytes + int64(recentShare*float64(s.opts.Budget))
	cache, err := ristretto.NewCache(&ristretto.Config[uint64, handle]{
		NumCounters:        counters,
		MaxCost:            max(s.opts.Budget-overhead, 1),
		BufferItems:        getBuffer,
		IgnoreInternalCost: true, // slotCost stands for it
		KeyToHash:          func(key uint64) (uint64, uint64) { return key, 0 },
		ShouldUpdate:       func(next, prev handle) bool { return !s.entry(prev).newer(s.entry(next)) }, // the same version: moved
		OnEvict:            func(*ristretto.Item[handle]) { s.evicted() },
		OnExit:             s.slabs.release,
	})
	if err != nil {
		return fmt.Errorf("profile cache: %w", err)
	}
	if !s.cache.CompareAndSwap(nil, cache) {
		cache.Close()
		return errors.New("profile cache is already running")
	}
	return nil
}

// close ends the store. No get may be running: ristretto would send on a closed channel.
func (s *store) close() {
	if cache := s.cache.Swap(nil); cache != nil {
		cache.Close()
	}
}

func (s *store) key(member string) uint64 { return maphash.String(s.seed, member) }

type freshness int // the state of a looked-up profile

const (
	absent freshness = iota
	stale
	fresh
)

// lookup returns the member's entry unless it is too old to be served.
func (s *store) lookup(key uint64, member string, now time.Duration) (entry, freshness) {
	e, ok := s.get(key, member)
	switch {
	case !ok || now >= s.hardExpiry(e):
		return entry{}, absent
	case now >= e.softExpiry():
		return e, stale
	}
	return e, fresh
}

// hardExpiry is when the entry is too old to be served at all.
func (s *store) hardExpiry(e entry) time.Duration {
	if e.head.json == 0 {
		return e.softExpiry() + s.opts.NegativeTTL
	}
	return e.softExpiry() + s.opts.StaleFor
}

// get returns the member's entry of any age. One that is being moved is found at the second attempt.
func (s *store) get(key uint64, member string) (entry, bool) {
	cache := s.cache.Load()
	if cache == nil {
		return entry{}, false
	}
	for {
		h, ok := cache.Get(key)
		if !ok {
			return entry{}, false
		}
		if e, ok := s.slabs.at(h); ok {
			return e, e.is(member)
		}
	}
}

func (s *store) entry(h handle) entry {
	e, _ := s.slabs.at(h)
	return e
}

// put stores copies of items, raises revisions, and calls refused with the index of each that was not kept.
func (s *store) put(items []item, refused func(i int)) {
	cache := s.cache.Load()
	for _, it := range items {
		cache.Set(it.key, s.slabs.add(it.e), it.e.cost())
	}
	cache.Wait()
	for i, it := range items {
		if _, kept := cache.GetTTL(it.key); !kept { // unlike Get, it does not count as a use
			refused(i)
		}
	}
	s.compact(cache)
	for _, it := range items {
		s.revisions.bump(it.key)
	}
}

// remove drops the member's entry, raises the member's revision and reports whether there was an entry.
func (s *store) remove(key uint64, member string) bool {
	defer s.revisions.bump(key)
	if _, found := s.get(key, member); !found {
		return false
	}
	cache := s.cache.Load()
	cache.Del(key)
	cache.Wait()
	s.compact(cache)
	return true
}

// compact moves the live entries out of slabs that are mostly empty and drops these.
func (s *store) compact(cache *ristrettoCache) {
	for number, ok := s.slabs.emptiest(); ok; number, ok = s.slabs.emptiest() {
		for _, e := range s.slabs.slab(number).liveEntries {
			cache.Set(s.key(e.member()), s.slabs.add(e), e.cost()) // which releases the old copy
		}
		s.slabs.drop(number)
		cache.Wait()
	}
}

func (s *store) used() int64 {
	cache := s.cache.Load()
	if cache == nil {
		return 0
	}
	return cache.MaxCost() - cache.RemainingCost()
}

// entries counts the entries: it locks ristretto's map part by part and visits every entry.
func (s *store) entries() (n int) {
	if cache := s.cache.Load(); cache != nil {
		cache.IterValues(func(handle) bool { n++; return false })
	}
	return n
}

// counters returns how many frequency counters ristretto has for a budget: both of their tables are powers of two.
func counters(budget int64) int64 {
	return max(powerOfTwo(budget/typicalEntry*countersPerEntry)/6*5, 1<<10)
}

// counterBytes is the size of n frequency counters: four of 4 bits, and a bloom filter of 1 % errors.
func counterBytes(n int64) int64 {
	bloomBits := math.Ceil(float64(n) * -math.Log(0.01) / (math.Ln2 * math.Ln2))
	return 2*powerOfTwo(n) + powerOfTwo(int64(bloomBits))/8
}

func powerOfTwo(n int64) int64 { return 1 << bits.Len64(uint64(n-1)) }
