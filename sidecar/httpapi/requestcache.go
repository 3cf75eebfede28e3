package httpapi

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/valyala/fasthttp"

	"rankcache"
	"rankcache/sidecar/internal/latency"
)

// requestCache holds a listener's parsed requests by their bytes, which come again and again; parsing takes longer than
// answering. Listeners share none: they check the Host differently. Concurrent use is safe.
type requestCache struct {
	seen   [requestSlots]atomic.Uint64 // hash of the request last seen there
	cached [requestSlots]atomic.Pointer[cachedRequest]
}

const (
	// requestSlots is a power of two well above the number of rooms that are read
	// much. Two requests with the same slot replace each other.
	requestSlots = 1 << 10
	// maxCachedRequest is the longest request that is looked up, in bytes. With the
	// tags in them, all that are cached take at most 2.5 MiB.
	maxCachedRequest = 1 << 10
)

// cachedRequest is one parsed request for a page without bounds on its age.
type cachedRequest struct {
	request     string          // its bytes
	query       rankcache.Query // of strings that it owns
	route       route
	class       *knownClass  // of the next one
	period      *classPeriod // whose board the query names; nil: the request names a board
	key         pageKey
	takes       coding
	ifNoneMatch []byte
}

// newRequestCache returns the cache of one listener, nil if it is not on.
func newRequestCache(on bool) *requestCache {
	if !on {
		return nil
	}
	return new(requestCache)
}

// find returns the cached request with these bytes, nil if there is none.
func (c *requestCache) find(hash uint64, request []byte) *cachedRequest {
	if q := c.cached[hash%requestSlots].Load(); q != nil && q.request == string(request) {
		return q
	}
	return nil
}

// seenBefore reports whether the request came before, and notes it: those that are new each time are never stored.
func (c *requestCache) seenBefore(hash uint64) bool {
	return c.seen[hash%requestSlots].Swap(hash) == hash
}

func (c *requestCache) put(hash uint64, q *cachedRequest) { c.cached[hash%requestSlots].Store(q) }

// recorder finds out which bytes are one whole request. The bytes of one read are that
// request only if fasthttp found no second request in them, read no further bytes for it,
// and had nothing left when it had answered, which shows when it reads the next.
//
// The zero recorder is ready for use by one goroutine.
type recorder struct {
	hash    uint64
	request []byte // candidate; empty: there is none
	begun   int    // requests found in it
	cached  *cachedRequest
}

// begin takes a read's bytes, before which nothing was left over, and returns the cached request that they are.
func (r *recorder) begin(c *requestCache, request []byte) *cachedRequest {
	*r = recorder{request: r.request[:0]}
	if len(request) > maxCachedRequest {
		return nil
	}
	r.hash = xxhash.Sum64(request)
	return c.find(r.hash, request)
}

// consider makes those bytes the candidate, if they came before. None are when they are more than fasthttp was given.
func (r *recorder) consider(c *requestCache, request []byte) {
	if len(request) <= maxCachedRequest && c.seenBefore(r.hash) {
		r.request = append(r.request, request...) // fasthttp changes its own
	}
}

// wants reports whether the current request would be cached.
func (r *recorder) wants() bool { return len(r.request) > 0 }

// record takes the current parsed request.
func (r *recorder) record(c *call, takes coding, ifNoneMatch []byte) {
	query := *c.query()
	query.CopiesOnly, query.Uncounted = true, true
	query.Board, query.Room = rankcache.BoardID(strings.Clone(string(query.Board))), strings.Clone(query.Room)
	r.cached = &cachedRequest{request: string(r.request), query: query, route: c.route, class: c.class, period: c.period, key: c.key(), takes: takes, ifNoneMatch: bytes.Clone(ifNoneMatch)}
}

// requestBegun is called when fasthttp has found a request.
func (r *recorder) requestBegun() {
	if r.begun++; r.begun > 1 {
		r.invalidate()
	}
}

// invalidate is called when the bytes turn out not to be all of one request.
func (r *recorder) invalidate() { r.request, r.cached = r.request[:0], nil }

// end is called when nothing of the bytes is left.
func (r *recorder) end(c *requestCache) {
	if r.cached != nil {
		c.put(r.hash, r.cached)
	}
}

// record notes the current parsed request, so that the same bytes need not be parsed again. It is called for a request
// that was answered by a kept page alone. Requests that fasthttp answers in a way of its own are left to it.
func record(ctx *fasthttp.RequestCtx, c *call, takes coding, asked *lists) {
	conn, ok := ctx.Conn().(*clientConn)
	if !ok || !conn.recorder.wants() || c.query().Bounded() {
		return
	}
	h := &ctx.Request.Header
	if h.IsGet() && h.IsHTTP11() && !ctx.Request.MayContinue() && len(asked.ifMatch) == 0 {
		conn.recorder.record(c, takes, asked.ifNoneMatch)
	}
}

// OnBytes implements [conn.Hooks]: it answers a request whose bytes are cached, if its page is kept.
func (c *clientConn) OnBytes(p []byte) (n int, answered bool, err error) {
	if c.requests == nil {
		n, err = c.frame.next(p)
		return n, false, err
	}
	if q := c.recorder.begin(c.requests, p); q != nil {
		begun := c.BeginAnswer()
		answered, err = c.answerCached(q)
		if closed := c.EndAnswer(begun); closed != nil {
			answered, err = true, closed
		}
		if answered || err != nil {
			return len(p), true, err
		}
	}
	if n, err = c.frame.next(p); err == nil && n == len(p) {
		c.recorder.consider(c.requests, p)
	}
	return n, false, err
}

func (c *clientConn) OnMore(p []byte) (n int, err error) {
	c.recorder.invalidate()
	return c.frame.next(p)
}

func (c *clientConn) OnNext() {
	if c.requests != nil {
		c.recorder.end(c.requests)
	}
}

// answerCached answers as the handler and fasthttp would; false, and nothing done, if a kept page is not enough.
func (c *clientConn) answerCached(q *cachedRequest) (answered bool, err error) {
	s := c.server
	if s.draining.Load() { // fasthttp has to close the connection
		return false, nil
	}
	var begun time.Time
	if c.sampler.Next() {
		begun = time.Now()
	}
	if q.period != nil && (s.cfg.Classes() != q.class.file || !q.period.Holds(s.cfg.Now())) { // may be another board's now
		return false, nil
	}
	a := &c.answers[0]
	defer func() { *a = rankcache.Answer{} }() // it would hold the board's state while the connection is idle
	c.queries[0] = q.query
	s.reader.Read(context.Background(), c.queries[:], c.answers[:])
	p := s.pagesOf(a)
	if p == nil || a.Form != q.key.form { // its order may be another direction now
		return false, nil
	}
	key := q.key
	key.source, key.incomplete = a.Source, a.Incomplete
	b := p.entries.Get(&key, newEntry).valid()
	if b == nil {
		return false, nil
	}
	if a.Shards == nil { // each of which is counted when it is read anew
		s.reader.Count(q.query.Board)
	}
	e := b.in(q.takes, s.packer)
	header, data, result := e.full, e.data, outcome(a.Source)
	if len(q.ifNoneMatch) > 0 && matches(q.ifNoneMatch, e.etag, true) {
		header, data, result = e.notModified, nil, outcomeNotModified+result
	}
	s.counters.add(c.id, q.route, result)
	c.head = header.append(c.head[:0], *s.date.Load(), a.CurrentAt)
	if !begun.IsZero() {
		s.durations.observe(q.route, result, time.Since(begun), latency.Every)
	}
	return true, c.WriteBoth(c.head, data)
}

// header is an answer's header as fasthttp writes it; the date is overwritten, and the age comes last.
type header struct {
	bytes []byte
	date  int // offset of the date
}

const (
	dateField  = "Date: "
	lineEnd    = "\r\n"
	headerRoom = 400 // bytes; none is longer
)

// newHeaders returns the header of an answer with the fields and length bytes, and that of its 304.
func newHeaders(fields *fasthttp.ResponseHeader, length int) (full, notModified header) {
	answer := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(answer)
	h := &answer.Header
	fields.CopyTo(h)
	h.SetContentLength(length)
	full = headerOf(h)
	fields.CopyTo(h)
	setNotModified(h)
	return full, headerOf(h)
}

func headerOf(h *fasthttp.ResponseHeader) header {
	bytes := bytes.TrimSuffix(h.AppendBytes(make([]byte, 0, headerRoom)), []byte(lineEnd))
	return header{bytes, strings.Index(view(bytes), dateField) + len(dateField)}
}

func (h header) append(dst, date []byte, currentAt time.Time) []byte {
	from := len(dst) + h.date
	dst = append(dst, h.bytes...)
	copy(dst[from:], date)
	if !currentAt.IsZero() {
		dst = append(append(dst, headerAge...), ": "...)
		dst = append(appendAge(dst, time.Now(), currentAt), lineEnd...)
	}
	return append(dst, lineEnd...)
}
