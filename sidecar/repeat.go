package sidecar

import (
	"net"

	"github.com/valyala/fasthttp"
)

// teach tells the connection what the request in hand asks for, so that the same
// bytes need not be read as a request again. It is called for one that was answered
// with the whole of a kept page. Requests that were answered thus because of what
// else they say are left to the library.
func (c *call) teach(ctx *fasthttp.RequestCtx, takes coding) {
	conn, ok := ctx.Conn().(*dataConn)
	if !ok || !conn.lesson.wanted() || c.query.bounded() {
		return
	}
	h := &ctx.Request.Header
	if h.IsGet() && h.IsHTTP11() && !ctx.Request.MayContinue() && len(h.PeekCanonical(headerIfNoneMatch)) == 0 {
		conn.lesson.learn(c, takes)
	}
}

// repeat answers a request whose bytes are known. It returns false if the library
// has to, with an error if it can't.
func (c *dataConn) repeat(q *question) (done bool, err error) {
	c.waiting.Store(repeating)
	done, err = c.server.repeat(c, q)
	if !c.waiting.CompareAndSwap(repeating, max(c.limits.now.Load(), 1)) {
		_ = c.Conn.Close()
		err = net.ErrClosed
	}
	return done, err
}

// repeat answers as the library would. It returns false, and has done nothing, if
// that takes more than a kept page.
func (s *DataServer) repeat(conn *dataConn, q *question) (done bool, err error) {
	if s.draining.Load() { // the library has the connection closed
		return false, nil
	}
	at, err := s.reader.find(&q.query, false)
	if err != nil || at.top == nil || !covers(at.top, q.key.start, q.key.limit, q.key.order) {
		return false, nil
	}
	a := at.head(q.key.start, q.key.limit)
	b := memoOf(a.memo).leaf(q.key).kept()
	if b == nil {
		return false, nil
	}
	s.reader.count(q.query.Board)
	s.counters.add(conn.id, routeTop, outcome(a.Source))
	k := b.in(q.takes, s.packer)
	conn.head = appendHeader(conn.head[:0], k.head, s.limits.date(), a.CurrentAt)
	return true, conn.send(k.data)
}
