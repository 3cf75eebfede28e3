package profile

import (
	"sync/atomic"
	"unsafe"
)

const (
	wordBytes = 4
	slabWords = 64 << 10 / wordBytes // 64 KiB: some 350 profiles of the usual size
	// largeWords is the size from which on an entry has a slab of its own, which bounds a shared slab's unused end.
	largeWords = slabWords / 16
)

// The memory that slabs may take beyond their live entries: a 32nd of these for released entries, and two slabs, one of
// them being filled. With less to spare entries would be moved more often: a load into a full cache takes 3.5 µs more
// than with an eighth.
const (
	spareShare = 32
	spareWords = 2 * slabWords
)

// handle is the place of an entry in the slabs. It is a number and no pointer: the collector would follow half a
// million pointers one by one, each into memory that is in no processor's cache. The zero handle is no entry.
type handle uint64

// From the top, a handle has 24 bits of the slab's number, 24 of its generation and 16 of the word.
const (
	generationBits = 24
	wordBits       = 16
	maxGeneration  = 1<<generationBits - 1
)

func newHandle(number, generation uint32, word int) handle {
	return handle(number)<<(generationBits+wordBits) | handle(generation)<<wordBits | handle(word)
}

func (h handle) number() int        { return int(h >> (generationBits + wordBits)) }
func (h handle) generation() uint32 { return uint32(h>>wordBits) & maxGeneration }
func (h handle) word() int          { return int(h & (1<<wordBits - 1)) }

// slab is memory with entries one behind the other, freed as a whole: an entry in use keeps it alive.
type slab struct {
	words      []uint32 // without pointers: the collector marks the slab and scans nothing
	generation uint32   // differs from those of earlier slabs with the same number
	used       int      // words; writer only
	live       atomic.Int64
	released   []atomic.Uint32 // a bit for two words, as no entry is shorter: which were released
}

func newSlab(words int, generation uint32) *slab {
	return &slab{words: make([]uint32, words), generation: generation, released: make([]atomic.Uint32, words/64+1)}
}

// add copies e, which fits, and returns the word at which it begins.
func (b *slab) add(e entry) int {
	at := b.used
	b.used += e.words()
	b.live.Add(int64(e.words()))
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&b.words[at])), e.size()), unsafe.Slice((*byte)(unsafe.Pointer(e.head)), e.size()))
	return at
}

func (b *slab) at(word int) entry { return entry{(*header)(unsafe.Pointer(&b.words[word]))} }

// release marks the entry as unused and returns its size.
func (b *slab) release(word int) (words int) {
	b.released[word/64].Or(1 << (word / 2 % 32))
	words = b.at(word).words()
	b.live.Add(-int64(words))
	return words
}

// liveEntries yields the entries that were not released, with their words.
func (b *slab) liveEntries(yield func(word int, e entry) bool) {
	for word := 0; word < b.used; {
		e := b.at(word)
		if b.released[word/64].Load()>>(word/2%32)&1 == 0 && !yield(word, e) {
			return
		}
		word += e.words()
	}
}

// slabs keep the bytes of all entries. One goroutine adds and drops; at and release may be called at any time.
type slabs struct {
	table      atomic.Pointer[[]atomic.Pointer[slab]] // by number
	unused     []uint32                               // numbers without a slab
	generation uint32                                 // of the newest slab
	current    uint32                                 // number of the slab that is being filled
	allocated  int64                                  // words of all slabs
	live       atomic.Int64                           // words of the live entries
}

func newSlabs() *slabs {
	s := &slabs{}
	s.table.Store(new([]atomic.Pointer[slab]))
	s.current = s.allocate(slabWords)
	return s
}

// at returns the entry, or false if it has been moved or dropped.
func (s *slabs) at(h handle) (entry, bool) {
	table := *s.table.Load()
	if h.number() >= len(table) {
		return entry{}, false
	}
	b := table[h.number()].Load()
	if b == nil || b.generation != h.generation() {
		return entry{}, false
	}
	return b.at(h.word()), true
}

func (s *slabs) add(e entry) handle {
	number, n := s.current, e.words()
	switch b := s.slab(number); {
	case n >= largeWords:
		number = s.allocate(n)
	case b.used+n > len(b.words):
		number = s.allocate(slabWords)
		s.current = number
	}
	s.live.Add(int64(n))
	b := s.slab(number)
	return newHandle(number, b.generation, b.add(e))
}

// release marks the entry as unused. It is called once for each handle.
func (s *slabs) release(h handle) {
	if h != 0 {
		s.live.Add(-int64(s.slab(uint32(h.number())).release(h.word())))
	}
}

func (s *slabs) slab(number uint32) *slab { return (*s.table.Load())[number].Load() }

func (s *slabs) allocate(words int) uint32 {
	if len(s.unused) == 0 {
		s.grow()
	}
	number := s.unused[len(s.unused)-1]
	s.unused = s.unused[:len(s.unused)-1]
	s.generation = s.generation%maxGeneration + 1
	(*s.table.Load())[number].Store(newSlab(words, s.generation))
	s.allocated += int64(words)
	return number
}

// grow doubles the table. Readers of the old table still find their slab there, or that it was dropped.
func (s *slabs) grow() {
	old := *s.table.Load()
	table := make([]atomic.Pointer[slab], max(2*len(old), 16))
	for i := range old {
		table[i].Store(old[i].Load())
	}
	for n := len(table); n > len(old); n-- {
		s.unused = append(s.unused, uint32(n-1))
	}
	s.table.Store(&table)
}

// emptiest returns the slab to compact next, or false while the slabs waste no more than they may.
func (s *slabs) emptiest() (number uint32, ok bool) {
	if live := s.live.Load(); s.allocated-live <= live/spareShare+spareWords {
		return 0, false
	}
	table, maxReleased := *s.table.Load(), 0.0
	for i := range table {
		b := table[i].Load()
		if b == nil || uint32(i) == s.current {
			continue
		}
		if released := 1 - float64(b.live.Load())/float64(b.used); released > maxReleased {
			number, maxReleased = uint32(i), released
		}
	}
	return number, maxReleased > 0
}

// drop removes a slab, all of whose entries are released or moved.
func (s *slabs) drop(number uint32) {
	b := s.slab(number)
	s.allocated -= int64(len(b.words))
	(*s.table.Load())[number].Store(nil)
	s.unused = append(s.unused, number)
}
