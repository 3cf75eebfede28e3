package localboard

import (
	"encoding/binary"
	"unsafe"
)

// arenaChunk is the size of an arena's chunks, in bytes; the first ones are
// smaller, so that a small board stays small.
const (
	arenaChunk      = 64 << 10
	arenaFirstChunk = 4 << 10
)

// maxMember is the longest member id, in bytes, that fits a chunk with its
// length before it.
const maxMember = arenaChunk - 3

// arena holds member ids, each behind its length, in chunks without pointers.
// Bytes are written once and never again, so an id is handed out as a string
// over them without a copy. A copy of the struct sees what was there when it was
// copied and may be read while the original grows.
type arena struct {
	chunks [][]byte
	used   int // bytes used of the last chunk
}

// add copies id and returns where it is. The caller has asked fits.
func (a *arena) add(id string) uint32 {
	var size [binary.MaxVarintLen64]byte
	head := binary.PutUvarint(size[:], uint64(len(id)))
	if len(a.chunks) == 0 || a.used+head+len(id) > len(a.chunks[len(a.chunks)-1]) {
		a.grow(head + len(id))
	}
	last, at := len(a.chunks)-1, a.used
	copy(a.chunks[last][at:], size[:head])
	copy(a.chunks[last][at+head:], id)
	a.used += head + len(id)
	return uint32(last)<<16 | uint32(at)
}

// fits says whether id can be added: it is short enough, and its place can be
// told in 32 bits.
func (a *arena) fits(id string) bool {
	return len(id) <= maxMember && len(a.chunks) < 1<<16-1
}

func (a *arena) grow(need int) {
	size := arenaChunk
	if n := len(a.chunks); n < 2 {
		size = arenaFirstChunk << (2 * n)
	}
	a.chunks = append(a.chunks, make([]byte, max(size, need)))
	a.used = 0
}

// at returns the id at a place that add returned. It shares the arena's memory,
// which is never written again, and keeps its chunk from being collected.
func (a *arena) at(place uint32) string {
	c := a.chunks[place>>16][place&0xffff:]
	n, head := uint64(c[0]), 1
	if n >= 0x80 {
		n, head = binary.Uvarint(c)
	}
	return unsafe.String(unsafe.SliceData(c[head:]), n) // in bounds: add wrote n bytes there
}

func (a *arena) bytes() (n int) {
	for _, c := range a.chunks {
		n += len(c)
	}
	return n
}
