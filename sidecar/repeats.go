package sidecar

import (
	"bytes"
	"strings"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"rankcache"
)

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

// lesson is how a connection learns what a request asks for. The bytes of one read
// are that request only if the library needed no further read for it and had
// nothing left when it had answered, which shows when it reads the next.
//
// The zero lesson is ready for use by one goroutine.
type lesson struct {
	hash     uint64
	request  []byte // worth learning; empty: not
	begun    int    // requests found in it
	question *question
}

// begin takes the bytes of a read before which nothing was left over, and returns
// what they ask for if that is known.
func (l *lesson) begin(r *repeats, request []byte) *question {
	*l = lesson{request: l.request[:0]}
	if len(request) > maxRepeated {
		return nil
	}
	l.hash = xxhash.Sum64(request)
	if q := r.find(l.hash, request); q != nil {
		return q
	}
	if r.again(l.hash) {
		l.request = append(l.request, request...) // the library changes its own
	}
	return nil
}

// wanted reports whether what the request in hand asks for would be learnt.
func (l *lesson) wanted() bool { return len(l.request) > 0 }

// learn is told what the request in hand asks for.
func (l *lesson) learn(c *call, takes coding, has []byte) {
	query := c.query
	query.Board, query.Room = rankcache.BoardID(strings.Clone(string(query.Board))), strings.Clone(query.Room)
	l.question = &question{request: string(l.request), query: query, key: c.pageKey(), takes: takes, has: bytes.Clone(has)}
}

// next is told that the library found a request.
func (l *lesson) next() {
	if l.begun++; l.begun > 1 {
		l.spoil()
	}
}

// spoil is told that the bytes were not all of one request.
func (l *lesson) spoil() { l.request, l.question = l.request[:0], nil }

// end is told that nothing of the bytes is left.
func (l *lesson) end(r *repeats) {
	if l.question != nil {
		r.keep(l.hash, l.question)
	}
}
