package profile

import (
	"time"
	"unsafe"
)

// entry is one cached profile, or the knowledge that there is none: a single
// block of memory without pointers. It is never changed. The block is a header, the
// member's id, the JSON.
type entry struct{ head *header }

// header is the fixed part of an entry's block, 12 bytes.
type header struct {
	version uint32 // of the flight that brought it; see newer
	softLow uint32 // when it is no longer fresh: milliseconds since the cache was made,
	json    uint16 // length; 0 when the service does not know the member
	member  uint8  // length
	softTop uint8  // in 40 bits, which is 34 years
}

const (
	headerLen = int(unsafe.Sizeof(header{}))
	// maxJSON is the longest profile that an entry can hold.
	maxJSON = 1<<16 - 1
)

// newEntry copies member and json into a new entry.
func newEntry(version uint32, soft time.Duration, member string, json []byte) entry {
	size := headerLen + len(member) + len(json)
	words := make([]uint64, wordsOf(size)) // not bytes, which need not be aligned
	text := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size)[headerLen:]
	copy(text[copy(text, member):], json)
	ms := soft.Milliseconds()
	h := (*header)(unsafe.Pointer(&words[0]))
	*h = header{version: version, softLow: uint32(ms), softTop: uint8(ms >> 32), json: uint16(len(json)), member: uint8(len(member))}
	return entry{h}
}

// size is how many bytes the entry has, 0 if it is none.
func (e entry) size() int {
	if e.head == nil {
		return 0
	}
	return headerLen + int(e.head.member) + int(e.head.json)
}

// words is how many words it takes in a slab.
func (e entry) words() int { return wordsOf(e.size()) }

func wordsOf(size int) int { return (size + wordBytes - 1) / wordBytes }

// cost is what it costs the budget.
func (e entry) cost() int64 {
	bytes := wordBytes * int64(e.words())
	return slotCost + bytes + bytes/spareShare
}

// newer reports whether e was asked for after f. Versions may wrap.
func (e entry) newer(f entry) bool { return int32(e.head.version-f.head.version) > 0 }

// soft is when the entry is no longer fresh.
func (e entry) soft() time.Duration {
	return time.Duration(int64(e.head.softTop)<<32|int64(e.head.softLow)) * time.Millisecond
}

// is reports whether this is the entry of member, and not one whose key has the
// same hash.
func (e entry) is(member string) bool {
	return e.head != nil && e.member() == member
}

// member returns the id, in the entry's own memory.
func (e entry) member() string {
	return unsafe.String((*byte)(unsafe.Add(unsafe.Pointer(e.head), headerLen)), int(e.head.member))
}

// profile returns the JSON, or nil when the service does not know the member.
// Its capacity is its length, so that an append copies.
func (e entry) profile() []byte {
	if e.head.json == 0 {
		return nil
	}
	return e.text(int(e.head.member), int(e.head.json))
}

// text returns n bytes of what follows the header, from index start.
func (e entry) text(start, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(e.head), headerLen+start)), n)
}
