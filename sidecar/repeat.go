package sidecar

import (
	"net"

	"github.com/valyala/fasthttp"

	"rankcache/internal/httpserve"
)

// teach tells the connection what the request in hand asks for, so that the same
// bytes need not be read as a request again. It is called for one that was answered
// from a kept page alone. Those that the library answers in a way of its own are left
// to it.
func (c *call) teach(ctx *fasthttp.RequestCtx, takes coding) {
	conn, ok := ctx.Conn().(*dataConn)
	if !ok || !conn.lesson.wanted() || c.query.bounded() {
		return
	}
	h := &ctx.Request.Header
	if h.IsGet() && h.IsHTTP11() && !ctx.Request.MayContinue() {
		conn.lesson.learn(c, takes, h.PeekCanonical(headerIfNoneMatch))
	}
}

// repeat answers a request whose bytes are known. It returns false if the library
// has to, with an error if it can't.
func (c *dataConn) repeat(q *question) (done bool, err error) {
	during := c.placeNow(repeating)
	c.place.Store(int64(during))
	done, err = c.server.repeat(c, q)
	if !c.leave(during, httpserve.Idle) {
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
	a, ok := s.reader.Peek(&q.query, q.key.start, q.key.limit)
	if !ok {
		return false, nil
	}
	b := s.pagesOf(&q.query, &a).entry(q.key).valid()
	if b == nil {
		return false, nil
	}
	s.reader.Count(q.query.Board)
	k := b.in(q.takes, s.packer)
	head, data, result := k.whole, k.data, outcome(a.Source)
	if len(q.has) > 0 && matches(q.has, k.etag) {
		head, data, result = k.same, nil, outcomeNotModified
	}
	s.counters.add(conn.id, routeTop, result)
	conn.head = head.append(conn.head[:0], s.limits.date(), a.CurrentAt)
	return true, conn.send(data)
}
