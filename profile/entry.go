package profile

import (
	"time"
	"unsafe"
)

// clock gives times as durations since the cache was made: 8 bytes, and monotonic.
type clock struct{ start time.Time }

func (c clock) now() time.Duration { return time.Since(c.start) }

// entry is one cached profile, or the knowledge that there is none: a single
// block of memory without pointers, which is never changed: a header, the
// member's id, the JSON.
type entry struct{ head *header }

// header is the fixed part of an entry's block, 12 bytes. Its soft expiry has 40
// bits of milliseconds, which is 34 years.
type header struct {
	version uint32 // of the flight that loaded it, see newer
	softLow uint32 // low 32 bits of the soft expiry
	json    uint16 // length; 0 when the service does not know the member
	member  uint8  // length
	softTop uint8  // high 8 bits of the soft expiry
}

const (
	headerLen = int(unsafe.Sizeof(header{}))
	// maxJSON is the longest profile that an entry can hold, in bytes.
	maxJSON = 1<<16 - 1
)

// newEntry copies member and json into a new entry.
func newEntry(version uint32, softExpiry time.Duration, member string, json []byte) entry {
	size := headerLen + len(member) + len(json)
	words := make([]uint32, wordsOf(size)) // not bytes, which need not be aligned
	text := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size)[headerLen:]
	copy(text[copy(text, member):], json)
	ms := softExpiry.Milliseconds()
	h := (*header)(unsafe.Pointer(&words[0]))
	*h = header{version: version, softLow: uint32(ms), softTop: uint8(ms >> 32), json: uint16(len(json)), member: uint8(len(member))}
	return entry{h}
}

// size returns the bytes of the entry, 0 for the zero entry.
func (e entry) size() int {
	if e.head == nil {
		return 0
	}
	return headerLen + int(e.head.member) + int(e.head.json)
}

// words returns the words that the entry takes in a slab.
func (e entry) words() int { return wordsOf(e.size()) }

func wordsOf(size int) int { return (size + wordBytes - 1) / wordBytes }

// cost returns the bytes of the budget that the entry takes.
func (e entry) cost() int64 {
	bytes := wordBytes * int64(e.words())
	return slotCost + bytes + bytes/spareShare
}

// newer reports whether e was requested after f. Versions may wrap.
func (e entry) newer(f entry) bool { return int32(e.head.version-f.head.version) > 0 }

// softExpiry is when the entry is no longer fresh.
func (e entry) softExpiry() time.Duration {
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
