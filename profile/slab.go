package profile

import (
	"sync/atomic"
	"unsafe"
)

const (
	wordBytes = 8
	// slabWords are 64 KiB: some 350 profiles of the usual size.
	slabWords = 64 << 10 / wordBytes
	// ownWords is from what size on an entry has a slab of its own: the end of no
	// shared slab stays empty by more.
	ownWords = slabWords / 16
)

// slab is memory that entries are copied into, one behind the other, and that is
// given back as a whole. What is in it is not changed any more; whoever holds an
// entry, or a profile of it, keeps all of the slab.
type slab struct {
	words []uint64 // without pointers: the collector marks the slab and looks no further
	birth uint32   // tells it from those that had its number before
	used  int      // words; writer only
	live  atomic.Int64
	gone  []atomic.Uint32 // a bit per word: the entry that begins there was released
}

func newSlab(words int, birth uint32) *slab {
	return &slab{words: make([]uint64, words), birth: birth, gone: make([]atomic.Uint32, words/32+1)}
}

// add copies e, for which there is room, and returns at which word it is.
func (b *slab) add(e entry) int {
	at := b.used
	b.used += e.words()
	b.live.Add(int64(e.words()))
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&b.words[at])), e.size()), unsafe.Slice((*byte)(unsafe.Pointer(e.head)), e.size()))
	return at
}

func (b *slab) at(word int) entry { return entry{(*header)(unsafe.Pointer(&b.words[word]))} }

// release says that nobody will ask for the entry again.
func (b *slab) release(word int) (words int) {
	b.gone[word/32].Or(1 << (word % 32))
	words = b.at(word).words()
	b.live.Add(-int64(words))
	return words
}

// left yields the entries that were not released, and where they are.
func (b *slab) left(yield func(word int, e entry) bool) {
	for word := 0; word < b.used; {
		e := b.at(word)
		if b.gone[word/32].Load()>>(word%32)&1 == 0 && !yield(word, e) {
			return
		}
		word += e.words()
	}
}
