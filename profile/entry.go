package profile

import (
	"time"
	"unsafe"
)

// entry is one cached profile, or the knowledge that there is none: a single
// block of memory without pointers, so that the collector marks it and looks no
// further, and the cache pays for one allocation and one pointer. It is never
// changed. The block is a header, the member's id, the JSON.
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

// newEntry copies member and json into a new entry and returns how many bytes
// the allocator really gave for it.
func newEntry(version uint32, soft time.Duration, member string, json []byte) (entry, int) {
	block := append([]byte(nil), make([]byte, headerLen+len(member)+len(json))...) // its capacity is the allocator's size class
	copy(block[headerLen:], member)
	copy(block[headerLen+len(member):], json)
	ms := soft.Milliseconds()
	h := (*header)(unsafe.Pointer(&block[0])) // aligned: the allocator gives no block of this kind less than 16 bytes
	*h = header{version: version, softLow: uint32(ms), softTop: uint8(ms >> 32), json: uint16(len(json)), member: uint8(len(member))}
	return entry{h}, cap(block)
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
	return e.head != nil && int(e.head.member) == len(member) && string(e.text(0, len(member))) == member
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
