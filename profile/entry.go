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

// header is the fixed part of an entry's block.
type header struct {
	version uint64        // of the flight that brought it: the greater is the newer
	soft    time.Duration // since the cache was made: when it is no longer fresh
	json    uint32        // length; 0 when the service does not know the member
	member  uint8         // length
}

const headerLen = int(unsafe.Sizeof(header{}))

// newEntry copies member and json into a new entry and returns how many bytes
// the allocator really gave for it.
func newEntry(version uint64, soft time.Duration, member string, json []byte) (entry, int) {
	block := append([]byte(nil), make([]byte, headerLen+len(member)+len(json))...) // its capacity is the allocator's size class
	copy(block[headerLen:], member)
	copy(block[headerLen+len(member):], json)
	h := (*header)(unsafe.Pointer(&block[0])) // blocks of 24 bytes and more are aligned to 8
	*h = header{version: version, soft: soft, json: uint32(len(json)), member: uint8(len(member))}
	return entry{h}, cap(block)
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
