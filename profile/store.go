package profile

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/dgraph-io/ristretto/v2"
)

// Heap that an entry takes beside its own block, and that the cache takes when
// it is empty. TestMemoryStaysWithinBudget holds them to what is measured.
const (
	// slotCost is the entry's place in ristretto's two maps: 102 to 172 bytes in
	// maps that only grow, up to 229 once entries come and go.
	slotCost = 192
	// typicalEntry is what an entry is expected to cost with everything, to
	// choose the number of frequency counters.
	typicalEntry = 360
	// countersPerEntry trades the memory of the counters (4 bytes each) for
	// a better choice of what to keep.
	countersPerEntry = 4
	// emptyCost is ristretto's buffer of writes, its empty maps, and the map of
	// flights.
	emptyCost = 1 << 20
	// getBuffer is how many lookups are noted before their counters are raised.
	getBuffer = 64
)

// item is an entry on its way into the store.
type item struct {
	key  uint64
	e    entry
	cost int
}

// store keeps entries in ristretto. get may be called by anybody at any time;
// put and remove by one goroutine at a time, which makes them exact although
// ristretto's are hints: there is never more than one batch in its buffer, and
// both return when it is applied. So no write is dropped, none is overtaken, and
// a get that follows sees it.
type store struct {
	cache   atomic.Pointer[ristretto.Cache[uint64, entry]] // nil until open: everything misses
	evicted func()
}

// open makes the cache, which starts two goroutines that close ends.
func (s *store) open(budget int64) error {
	counters := max(budget/typicalEntry*countersPerEntry, 1<<10)
	cache, err := ristretto.NewCache(&ristretto.Config[uint64, entry]{
		NumCounters:        counters,
		MaxCost:            max(budget-counterBytes(counters)-emptyCost-int64(lingerShare*float64(budget)), 1),
		BufferItems:        getBuffer,
		IgnoreInternalCost: true, // slotCost says what it really is
		KeyToHash:          func(key uint64) (uint64, uint64) { return key, 0 },
		ShouldUpdate:       func(next, prev entry) bool { return next.newer(prev) },
		OnEvict:            func(*ristretto.Item[entry]) { s.evicted() },
	})
	if err != nil {
		return fmt.Errorf("profile cache: %w", err)
	}
	if !s.cache.CompareAndSwap(nil, cache) {
		cache.Close()
		return errors.New("profile cache: runs already")
	}
	return nil
}

// close gives the memory back. Nobody may be calling get: ristretto would send
// on a closed channel.
func (s *store) close() { s.cache.Swap(nil).Close() }

// get returns the member's entry, fresh or not.
func (s *store) get(key uint64, member string) (entry, bool) {
	e, _ := s.cache.Load().Get(key) // a nil cache has nothing
	return e, e.is(member)
}

// put stores items and calls refused with the index of each that was not kept.
func (s *store) put(items []item, refused func(i int)) {
	cache := s.cache.Load()
	for _, it := range items {
		cache.Set(it.key, it.e, int64(it.cost+slotCost))
	}
	cache.Wait()
	for i, it := range items {
		if _, kept := cache.GetTTL(it.key); !kept { // unlike Get, it does not count as a use
			refused(i)
		}
	}
}

// remove drops the member's entry and reports whether there was one.
func (s *store) remove(key uint64, member string) bool {
	if _, found := s.get(key, member); !found {
		return false
	}
	cache := s.cache.Load()
	cache.Del(key)
	cache.Wait()
	return true
}

// used returns the bytes that the entries cost at present.
func (s *store) used() int64 {
	cache := s.cache.Load()
	return cache.MaxCost() - cache.RemainingCost()
}

// entries counts the entries, for tests and measurements: it locks the store
// part by part and looks at every entry.
func (s *store) entries() (n int) {
	s.cache.Load().IterValues(func(entry) bool { n++; return false })
	return n
}

// counterBytes is what n of ristretto's frequency counters take: four 4-bit
// counters, and a bloom filter of 1 % errors, each rounded up to a power of two.
func counterBytes(n int64) int64 {
	bloomBits := math.Ceil(float64(n) * -math.Log(0.01) / (math.Ln2 * math.Ln2))
	return 2*powerOfTwo(n) + powerOfTwo(int64(bloomBits))/8
}

func powerOfTwo(n int64) int64 { return 1 << bits.Len64(uint64(n-1)) }
