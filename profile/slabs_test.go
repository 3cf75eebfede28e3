package profile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"rankcache/internal/testkit"
)

// sized returns an entry whose JSON reports which one it is.
func sized(version uint32, member string, size int) entry {
	json := fmt.Appendf(nil, `{"v":%d,"of":%q,"x":"`, version, member)
	return newEntry(version, 0, member, append(append(json, strings.Repeat("x", size)...), `"}`...))
}

// randomSize is mostly that of a profile, sometimes far more.
func randomSize(random *rand.Rand) int {
	switch random.IntN(50) {
	case 0:
		return random.IntN(60_000)
	case 1:
		return random.IntN(8_000)
	}
	return random.IntN(300)
}

// Entries come, go and are moved, in memory that stays within bounds.
func TestSlabs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s := newSlabs()
	have := make(map[string]handle)
	for n := range 60_000 {
		member := fmt.Sprint(random.IntN(3_000))
		if h, ok := have[member]; ok {
			s.release(h)
			delete(have, member)
		}
		if random.IntN(3) > 0 {
			have[member] = s.add(sized(uint32(n), member, randomSize(random)))
		}
		for number, ok := s.emptiest(); ok; number, ok = s.emptiest() {
			for word, e := range s.slab(number).liveEntries {
				h := newHandle(number, s.slab(number).generation, word)
				if have[e.member()] != h {
					t.Fatalf("%s is left in slab %d, and should not be", e.member(), number)
				}
				have[e.member()] = s.add(e)
				s.release(h)
			}
			s.drop(number)
		}
		if n%1000 == 0 {
			checkSlabs(t, s, have)
		}
	}
}

func checkSlabs(t *testing.T, s *slabs, have map[string]handle) {
	t.Helper()
	var live, held int64
	for member, h := range have {
		e, ok := s.at(h)
		if !ok || !e.is(member) || !bytes.Contains(e.profile(), fmt.Appendf(nil, `"v":%d,"of":%q`, e.head.version, member)) {
			t.Fatalf("entry of %s: %v", member, ok)
		}
		live += int64(e.words())
	}
	table := *s.table.Load()
	for i := range table {
		if b := table[i].Load(); b != nil {
			held += int64(len(b.words))
		}
	}
	if live != s.live.Load() || held != s.allocated {
		t.Errorf("%d words are live, counted %d; %d held, counted %d", live, s.live.Load(), held, s.allocated)
	}
	if most := live + live/spareShare + spareWords; held > most {
		t.Errorf("%d words held for %d, want at most %d", held, live, most)
	}
}

// A handle into a slab that was dropped means nothing, also when another slab has
// its number.
func TestHandleOfDroppedSlab(t *testing.T) {
	s := newSlabs()
	old := s.add(sized(1, "big", 20_000))
	s.release(old)
	s.drop(uint32(old.number()))
	if _, ok := s.at(old); ok {
		t.Error("found in a slab that was dropped")
	}
	next := s.add(sized(2, "other", 20_000))
	if next.number() != old.number() {
		t.Fatalf("number %d, want that of the slab that was dropped, %d", next.number(), old.number())
	}
	if _, ok := s.at(old); ok {
		t.Error("found in another slab")
	}
}

// While entries come and go around them and are moved, members that stay are
// found at every moment, and what was found stays what it is.
func TestEntriesAreFoundWhileTheyAreMoved(t *testing.T) {
	s := openStore(t, 64<<20)
	const stay = 500
	for i := range stay {
		s.put([]item{{keyOf(fmt.Sprint(i)), sized(1, fmt.Sprint(i), 100)}}, noRefusal(t))
		s.put([]item{{keyOf("x"), sized(uint32(i), "x", 100)}}, noRefusal(t)) // what is around them goes
	}
	first, _ := s.cache.Load().Get(keyOf("0"))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() { readUntil(t, s, stay, stop) })
	}
	random := rand.New(rand.NewPCG(3, 4))
	for n := range testkit.Sized(5000, 20_000) {
		member := fmt.Sprint("y", random.IntN(50))
		s.put([]item{{keyOf(member), sized(uint32(n), member, 2_000)}}, noRefusal(t))
	}
	close(stop)
	readers.Wait()
	if now, _ := s.cache.Load().Get(keyOf("0")); now == first {
		t.Error("the first entry was not moved")
	}
	checkStore(t, s)
}

func readUntil(t *testing.T, s *store, members int, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		member := fmt.Sprint(i % members)
		e, ok := s.get(keyOf(member), member)
		if !ok {
			t.Errorf("member %s is not there", member)
			return
		}
		runtime.Gosched() // the slab may be dropped now
		if !bytes.Contains(e.profile(), fmt.Appendf(nil, `"of":%q`, member)) {
			t.Errorf("profile of %s: %.60s", member, e.profile())
			return
		}
	}
}

// checkStore compares what ristretto has with what the slabs believe is live.
func checkStore(t *testing.T, s *store) {
	t.Helper()
	var live int64
	s.cache.Load().IterValues(func(h handle) bool {
		e, ok := s.slabs.at(h)
		if !ok {
			t.Error("a handle of nothing")
			return true
		}
		live += int64(e.words())
		return false
	})
	if got := s.slabs.live.Load(); got != live {
		t.Errorf("%d words count as live, %d are", got, live)
	}
}

// Evicted, refused, replaced and dropped entries all give their words back.
func TestStoreReleasesWhatGoes(t *testing.T) {
	s := openStore(t, minBudget)
	random := rand.New(rand.NewPCG(5, 6))
	for n := range 3_000 {
		items := make([]item, 20)
		for i := range items {
			member := fmt.Sprint(n, "-", i)
			items[i] = item{keyOf(member), sized(uint32(n), member, randomSize(random))}
		}
		s.put(items, func(int) {})
		s.put([]item{newItem(uint32(n-1), "same"), newItem(uint32(n), "same2")}, func(int) {})
		if n%7 == 0 {
			s.remove(items[0].key, fmt.Sprint(n, "-", 0))
		}
	}
	checkStore(t, s)
	if most := s.slabs.live.Load()*(1+spareShare)/spareShare + spareWords; s.slabs.allocated > most {
		t.Errorf("%d words held, want at most %d", s.slabs.allocated, most)
	}
}

// The collector has slabs to mark, not entries.
func TestEntriesAreNoHeapObjects(t *testing.T) {
	objects := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapObjects
	}
	before, s := objects(), openStore(t, 64<<20)
	const n = 50_000
	for i := range n / 100 {
		items := make([]item, 100)
		for k := range items {
			member := fmt.Sprint(i*100 + k)
			items[k] = item{keyOf(member), sized(1, member, 100)}
		}
		s.put(items, noRefusal(t))
	}
	if after := objects(); after > before+n/10 {
		t.Errorf("%d objects for %d entries", after-before, n)
	}
	runtime.KeepAlive(s)
}
