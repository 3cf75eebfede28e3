package httpapi

import (
	"bytes"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/valyala/fasthttp"

	"rankcache"
)

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

// begin takes the bytes of a read before which nothing was left over, and returns the
// cached request that they are, if it is there.
func (r *recorder) begin(c *requestCache, request []byte) *cachedRequest {
	*r = recorder{request: r.request[:0]}
	if len(request) > maxCachedRequest {
		return nil
	}
	r.hash = xxhash.Sum64(request)
	if q := c.find(r.hash, request); q != nil {
		return q
	}
	if c.seenBefore(r.hash) {
		r.request = append(r.request, request...) // fasthttp changes its own
	}
	return nil
}

// wants reports whether the current request would be cached.
func (r *recorder) wants() bool { return len(r.request) > 0 }

// record takes what the current request asks for.
func (r *recorder) record(c *call, takes coding, ifNoneMatch []byte) {
	query := c.query
	query.Board, query.Room = rankcache.BoardID(strings.Clone(string(query.Board))), strings.Clone(query.Room)
	r.cached = &cachedRequest{request: string(r.request), query: query, key: c.pageKey(), takes: takes, ifNoneMatch: bytes.Clone(ifNoneMatch)}
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

// record notes what the current request asks for, so that the same bytes need not be
// parsed again. It is called for a request that was answered by a kept page alone.
// Requests that fasthttp answers in a way of its own are left to it.
func record(ctx *fasthttp.RequestCtx, c *call, takes coding) {
	conn, ok := ctx.Conn().(*clientConn)
	if !ok || !conn.recorder.wants() || c.query.Bounded() {
		return
	}
	h := &ctx.Request.Header
	if h.IsGet() && h.IsHTTP11() && !ctx.Request.MayContinue() {
		conn.recorder.record(c, takes, h.PeekCanonical(headerIfNoneMatch))
	}
}
