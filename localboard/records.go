package localboard

import (
	"sync/atomic"
	"unsafe"
)

// Sizes in words of 8 bytes. The first blocks are smaller, so that a small board stays small.
const (
	wordBytes       = 8
	blockWords      = 8 << 10 // 64 KiB
	firstBlockWords = 512     // 4 KiB
)

const maxMember = blockWords*wordBytes - idOffset // the longest member id, in bytes, that fits a block

// record is the fixed part of a member's record; the rest of the id follows it in memory. With an id of usual length a
// record fits one cache line. What table and tree have is not in it: the score, and where that is.
type record struct {
	seq uint64 // the highest seq applied to the member; a removed one keeps it as a tombstone. Writer only.
	// changeNo is the place in the list of changes, from 1; 0: unchanged since the last publication. Readers load it.
	changeNo atomic.Uint32
	size     uint16  // the id's length + 1, so that 0 is no record
	idBytes  [2]byte // the id's first bytes
}

const idOffset = int(unsafe.Offsetof(record{}.idBytes))

// records stores the members' records one after the other in blocks without pointers, which the garbage collector need
// not scan. A record's handle is its place; handles rise in order of arrival.
//
// A record's size and id are written before its handle is passed on and never again, so that an id is returned as a
// string over its bytes, without a copy. A copy of the struct is a reader's: it has the records that existed when it
// was made, and shares them with the writer.
type records struct {
	blocks [][]uint64
	used   int // words used of the last block
}

func words(n int) int { return max(int(unsafe.Sizeof(record{})), idOffset+n+wordBytes-1) / wordBytes }

// fits reports whether a record for id can be added: the id is short enough, and there are 32-bit handles left.
func (s *records) fits(id string) bool {
	return len(id) <= maxMember && len(s.blocks) < 1<<32/blockWords-1
}

// add makes a record for id, which fits, and returns its handle.
func (s *records) add(id string) (uint32, *record) {
	need := words(len(id))
	if n := len(s.blocks); n == 0 || s.used+need > len(s.blocks[n-1]) {
		s.blocks = append(s.blocks, make([]uint64, max(need, blockSize(n))))
		s.used = 0
	}
	h := uint32(len(s.blocks)-1)*blockWords + uint32(s.used)
	s.used += need
	r := s.at(h)
	r.size = uint16(len(id) + 1)
	copy(unsafe.Slice(&r.idBytes[0], len(id)), id)
	return h, r
}

func blockSize(n int) int {
	if n < 2 {
		return firstBlockWords << (2 * n)
	}
	return blockWords
}

// at returns the record of a handle that add returned. The pointer keeps its block alive.
func (s *records) at(handle uint32) *record {
	return (*record)(unsafe.Pointer(&s.blocks[handle/blockWords][handle%blockWords]))
}

// id returns the id, which shares the memory of the record and keeps its block alive.
func (r *record) id() string { return unsafe.String(&r.idBytes[0], int(r.size)-1) }

// end returns a handle above that of every record.
func (s *records) end() uint32 {
	if len(s.blocks) == 0 {
		return 0
	}
	return uint32(len(s.blocks)-1)*blockWords + uint32(s.used)
}

// all yields every record in order of arrival.
func (s *records) all(yield func(uint32, *record) bool) { s.from(0, yield) }

// from yields the records from a handle on, which is that of a record or end.
func (s *records) from(start uint32, yield func(uint32, *record) bool) {
	first, begin, end := int(start/blockWords), int(start%blockWords), s.end()
	for i := first; i < len(s.blocks); i++ {
		c, at := s.blocks[i], 0
		if i == first {
			at = begin
		}
		for at+words(0) <= len(c) {
			h := uint32(i)*blockWords + uint32(at)
			if h >= end {
				return // a reader's: what follows is the writer's
			}
			r := s.at(h)
			if r.size == 0 {
				break // the rest of the block is free
			}
			if !yield(h, r) {
				return
			}
			at += words(int(r.size) - 1)
		}
	}
}

// some calls do with up to n records from a handle on, and returns the next one's handle, allHandles after the last.
func (s *records) some(start uint32, n int, do func(uint32, *record)) (next uint32) {
	next = allHandles
	s.from(start, func(h uint32, r *record) bool {
		if n--; n < 0 {
			next = h
			return false
		}
		do(h, r)
		return true
	})
	return next
}

func (s *records) bytes() (n int) {
	for _, c := range s.blocks {
		n += wordBytes * len(c)
	}
	return n
}
