package sidecar

import (
	"bytes"
	"strings"

	"github.com/cespare/xxhash/v2"

	"rankcache"
)

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
