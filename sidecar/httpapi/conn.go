package httpapi

import (
	"bytes"
	"net"

	"github.com/valyala/fasthttp"

	"rankcache"
	"rankcache/sidecar/internal/conn"
	"rankcache/sidecar/internal/latency"
)

// clientConn is a connection with its state from request to request.
type clientConn struct {
	conn.Conn
	id       uint64        // tells connections apart where they count
	call     *call         // of its requests, which come one after the other
	requests *requestCache // of the listener, nil: none
	recorder recorder
	sampler  latency.Sampler
	frame    frame
	dated    bool // the date of the present answer is set
	refused  bool // the present answer is the last, and the request was not read to its end
	server   *Server
	head     []byte             // room for that of a cached answer
	queries  [1]rankcache.Query // and for its question
	answers  [1]rankcache.Answer
}

// cappedListener accepts no more connections than the server may have open: at the cap one gives way to each new one.
// Its client connects again, while a new one that is refused or left waiting would take the sidecar for broken.
type cappedListener struct {
	net.Listener
	server   *Server
	requests *requestCache
}

func (l cappedListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := newConn(accepted, l.server, l.requests)
	l.server.conns.Add(c)
	return c, nil
}

// newConn returns a connection that waits for its first request.
func newConn(accepted net.Conn, s *Server, requests *requestCache) *clientConn {
	c := &clientConn{server: s, requests: requests, id: s.lastConn.Add(1)}
	c.sampler = latency.NewSampler(c.id)
	c.Open(accepted, s.clock, c)
	return c
}

// Write sends (a part of) an answer with the date of cached answers: fasthttp's is up to two seconds old.
func (c *clientConn) Write(p []byte) (int, error) {
	if !c.dated {
		c.dated = setDateOf(p, *c.server.date.Load())
	}
	n, err := c.Conn.Write(p)
	if c.refused && err == nil {
		c.Linger(maxUnread, lingerTime)
	}
	return n, err
}

// setDateOf overwrites the date of the answer that p begins with, and reports whether p has one: a 100 has none.
func setDateOf(p, date []byte) bool {
	const field = lineEnd + dateField
	at := bytes.Index(p[:min(len(p), headerRoom)], []byte(field))
	if !bytes.HasPrefix(p, []byte("HTTP/1.1 ")) || at < 0 || at+len(field)+len(date) > len(p) {
		return false
	}
	copy(p[at+len(field):], date)
	return true
}

// connState is called by fasthttp with each connection's new state.
func connState(nc net.Conn, state fasthttp.ConnState) {
	c, ok := nc.(*clientConn)
	if !ok {
		return
	}
	switch state {
	case fasthttp.StateActive: // the first byte is here
		c.RequestBegun()
		c.dated = false
		c.recorder.requestBegun()
	case fasthttp.StateIdle: // the answer has been written
		c.AnswerSent()
		if c.call != nil {
			c.call.shrink()
		}
	case fasthttp.StateClosed:
		c.server.conns.Remove(c)
	}
}

// setRefused has the connection end with the answer, which is short enough for one write.
func setRefused(ctx *fasthttp.RequestCtx) {
	ctx.SetConnectionClose()
	if c, ok := ctx.Conn().(*clientConn); ok {
		c.refused = true
	}
}
