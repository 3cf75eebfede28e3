package profile

import "sync/atomic"

// handle says where an entry is in the slabs. It is a number and no pointer: the
// collector would follow half a million of them one by one, each into memory that
// no processor's cache has. The zero handle is no entry.
type handle uint64

// From the top, a handle has 24 bits of the slab's number, then of its birth, then
// of the word.
const (
	handleBirth = 24
	handleWord  = 16
	lastBirth   = 1<<handleBirth - 1
)

func newHandle(number, birth uint32, word int) handle {
	return handle(number)<<(handleBirth+handleWord) | handle(birth)<<handleWord | handle(word)
}

func (h handle) number() int   { return int(h >> (handleBirth + handleWord)) }
func (h handle) birth() uint32 { return uint32(h>>handleWord) & lastBirth }
func (h handle) word() int     { return int(h & (1<<handleWord - 1)) }

// slabs keep the bytes of all entries. One goroutine adds and drops; at and
// release may be called at any time.
type slabs struct {
	table  atomic.Pointer[[]atomic.Pointer[slab]] // by number
	free   []uint32                               // numbers without a slab
	births uint32
	open   uint32 // number of the slab that is being filled
	held   int64  // words of all slabs
	live   atomic.Int64
}

func newSlabs() *slabs {
	s := &slabs{}
	s.table.Store(new([]atomic.Pointer[slab]))
	s.open = s.begin(slabWords)
	return s
}

// at returns the entry, or false if it has been moved or dropped.
func (s *slabs) at(h handle) (entry, bool) {
	table := *s.table.Load()
	if h.number() >= len(table) {
		return entry{}, false
	}
	b := table[h.number()].Load()
	if b == nil || b.birth != h.birth() {
		return entry{}, false
	}
	return b.at(h.word()), true
}

// add copies e and returns where it is now.
func (s *slabs) add(e entry) handle {
	number, n := s.open, e.words()
	switch b := s.slab(number); {
	case n >= ownWords:
		number = s.begin(n)
	case b.used+n > len(b.words):
		number = s.begin(slabWords)
		s.open = number
	}
	s.live.Add(int64(n))
	b := s.slab(number)
	return newHandle(number, b.birth, b.add(e))
}

// release says that nobody will ask for the entry again, which has not been
// released before.
func (s *slabs) release(h handle) {
	if h != 0 {
		s.live.Add(-int64(s.slab(uint32(h.number())).release(h.word())))
	}
}

func (s *slabs) slab(number uint32) *slab { return (*s.table.Load())[number].Load() }

// begin makes a slab and returns its number.
func (s *slabs) begin(words int) uint32 {
	if len(s.free) == 0 {
		s.grow()
	}
	number := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	s.births = s.births%lastBirth + 1
	(*s.table.Load())[number].Store(newSlab(words, s.births))
	s.held += int64(words)
	return number
}

// grow makes numbers for more slabs. Who still reads the old table finds in it
// what its handles mean, or that they mean nothing.
func (s *slabs) grow() {
	old := *s.table.Load()
	table := make([]atomic.Pointer[slab], max(2*len(old), 16))
	for i := range old {
		table[i].Store(old[i].Load())
	}
	for n := len(table); n > len(old); n-- {
		s.free = append(s.free, uint32(n-1))
	}
	s.table.Store(&table)
}

// What the slabs may take beyond their live entries: an eighth of these, in which
// others have been, and two slabs, one of them being filled. With less to spare
// entries would be moved more often.
const (
	spareShare = 8
	spareWords = 2 * slabWords
)

// emptiest returns which slab to move next, or false as long as there is no need
// to: slabs are as full as they should be.
func (s *slabs) emptiest() (number uint32, ok bool) {
	if live := s.live.Load(); s.held-live <= live/spareShare+spareWords {
		return 0, false
	}
	table, most := *s.table.Load(), 0.0
	for i := range table {
		b := table[i].Load()
		if b == nil || uint32(i) == s.open {
			continue
		}
		if gone := 1 - float64(b.live.Load())/float64(b.used); gone > most {
			number, most = uint32(i), gone
		}
	}
	return number, most > 0
}

// drop gives a slab up. Nobody may be given a handle into it any more.
func (s *slabs) drop(number uint32) {
	b := s.slab(number)
	s.held -= int64(len(b.words))
	(*s.table.Load())[number].Store(nil)
	s.free = append(s.free, number)
}
