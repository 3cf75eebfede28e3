package profile

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/dgraph-io/ristretto/v2"
)

// Heap that an entry takes beside its words in a slab, and that the cache takes when
// it is empty. TestMemoryStaysWithinBudget holds them to what is measured.
const (
	// slotCost is the entry's place in ristretto's two maps: 102 to 172 bytes in
	// maps that only grow, up to 229 once entries come and go.
	slotCost = 192
	// typicalEntry is what an entry is expected to cost with everything, to
	// choose the number of frequency counters.
	typicalEntry = 384
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
	key uint64
	e   entry
}

// store keeps entries in slabs, and in ristretto where they are. get may be called
// by anybody at any time; put and remove by one goroutine at a time, which makes
// them exact although ristretto's are hints: there is never more than one batch in
// its buffer, and both return when it is applied. So no write is dropped, none is
// overtaken, and a get that follows sees it. A nil store has nothing.
type store struct {
	cache *ristretto.Cache[uint64, handle]
	slabs *slabs
	key   func(member string) uint64
}

// newStore returns a store for entries of budget bytes with all that belongs to
// them. It starts two goroutines that close ends.
func newStore(budget int64, key func(member string) uint64, evicted func()) (*store, error) {
	s := &store{slabs: newSlabs(), key: key}
	counters := max(budget/typicalEntry*countersPerEntry, 1<<10)
	room := budget - counterBytes(counters) - emptyCost - spareWords*wordBytes - int64(lingerShare*float64(budget))
	var err error
	s.cache, err = ristretto.NewCache(&ristretto.Config[uint64, handle]{
		NumCounters:        counters,
		MaxCost:            max(room, 1),
		BufferItems:        getBuffer,
		IgnoreInternalCost: true, // slotCost says what it really is
		KeyToHash:          func(key uint64) (uint64, uint64) { return key, 0 },
		ShouldUpdate:       func(next, prev handle) bool { return !s.entry(prev).newer(s.entry(next)) }, // the same version: moved
		OnEvict:            func(*ristretto.Item[handle]) { evicted() },
		OnExit:             s.slabs.release,
	})
	if err != nil {
		return nil, fmt.Errorf("profile cache: %w", err)
	}
	return s, nil
}

// close ends the store. Nobody may be calling get: ristretto would send on a closed
// channel.
func (s *store) close() {
	if s != nil {
		s.cache.Close()
	}
}

// get returns the member's entry, fresh or not. An entry that is moved just now
// is where ristretto says the second time.
func (s *store) get(key uint64, member string) (entry, bool) {
	if s == nil {
		return entry{}, false
	}
	for {
		h, ok := s.cache.Get(key)
		if !ok {
			return entry{}, false
		}
		if e, ok := s.slabs.at(h); ok {
			return e, e.is(member)
		}
	}
}

// entry returns the entry of a handle that was not released.
func (s *store) entry(h handle) entry {
	e, _ := s.slabs.at(h)
	return e
}

// put stores copies of items and calls refused with the index of each that was
// not kept.
func (s *store) put(items []item, refused func(i int)) {
	for _, it := range items {
		s.cache.Set(it.key, s.slabs.add(it.e), it.e.cost())
	}
	s.cache.Wait()
	for i, it := range items {
		if _, kept := s.cache.GetTTL(it.key); !kept { // unlike Get, it does not count as a use
			refused(i)
		}
	}
	s.tidy()
}

// tidy moves what is left in slabs that are mostly empty, and gives these up.
func (s *store) tidy() {
	for number, ok := s.slabs.emptiest(); ok; number, ok = s.slabs.emptiest() {
		for _, e := range s.slabs.slab(number).left {
			s.cache.Set(s.key(e.member()), s.slabs.add(e), e.cost()) // which releases it where it was
		}
		s.slabs.drop(number)
		s.cache.Wait()
	}
}

// remove drops the member's entry and reports whether there was one.
func (s *store) remove(key uint64, member string) bool {
	if _, found := s.get(key, member); !found {
		return false
	}
	s.cache.Del(key)
	s.cache.Wait()
	s.tidy()
	return true
}

// used returns the bytes that the entries cost at present.
func (s *store) used() int64 {
	if s == nil {
		return 0
	}
	return s.cache.MaxCost() - s.cache.RemainingCost()
}

// entries counts the entries, for tests and measurements: it locks the store
// part by part and looks at every entry.
func (s *store) entries() (n int) {
	s.cache.IterValues(func(handle) bool { n++; return false })
	return n
}

// counterBytes is what n of ristretto's frequency counters take: four 4-bit
// counters, and a bloom filter of 1 % errors, each rounded up to a power of two.
func counterBytes(n int64) int64 {
	bloomBits := math.Ceil(float64(n) * -math.Log(0.01) / (math.Ln2 * math.Ln2))
	return 2*powerOfTwo(n) + powerOfTwo(int64(bloomBits))/8
}

func powerOfTwo(n int64) int64 { return 1 << bits.Len64(uint64(n-1)) }
