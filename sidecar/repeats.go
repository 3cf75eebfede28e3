package sidecar

import "sync/atomic"

// repeats holds what the requests to one listener ask for, by their bytes: an app
// asks for the page of a room with the same bytes again and again, and finding out
// anew what they mean takes longer than answering. Listeners share none, because
// what they let pass differs. It may be used concurrently.
type repeats struct {
	seen  [repeatSlots]atomic.Uint64 // hash of the request last seen there
	known [repeatSlots]atomic.Pointer[question]
}

const (
	// repeatSlots is a power of two well above the number of rooms that are read
	// much. Two requests with the same slot take turns in it.
	repeatSlots = 1 << 10
	// maxRepeated is the longest request that is looked up, in bytes. With the tags in
	// them, all that are known take at most 2.5 MiB.
	maxRepeated = 1 << 10
)

// question is what one request asks for: a kept page, of any age.
type question struct {
	request string // its bytes
	query   Query  // of strings that it owns
	key     pageKey
	takes   coding
	has     []byte // tags, as in If-None-Match
}

// find returns what request asks for, nil if that is not known.
func (r *repeats) find(hash uint64, request []byte) *question {
	if q := r.known[hash%repeatSlots].Load(); q != nil && q.request == string(request) {
		return q
	}
	return nil
}

// again reports whether the request came before, and takes note of it. Whoever
// sends something new each time, such as a trace, thus leaves nothing behind.
func (r *repeats) again(hash uint64) bool {
	return r.seen[hash%repeatSlots].Swap(hash) == hash
}

func (r *repeats) keep(hash uint64, q *question) { r.known[hash%repeatSlots].Store(q) }
