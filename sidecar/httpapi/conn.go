package httpapi

import (
	"net"

	"github.com/valyala/fasthttp"

	"rankcache/sidecar/internal/conn"
)

// clientConn is a connection with what is kept for it from request to request.
type clientConn struct {
	conn.Conn
	id       uint64        // tells connections apart where they count
	call     *call         // of its requests, which come one after the other
	requests *requestCache // of the listener, nil: none
	recorder recorder
	server   *Server
	head     []byte // room for that of a cached answer
}

// cappedListener accepts no more connections than the server may have open: at the
// cap one gives way to each new one. Its client connects again, while a new one that
// is refused or left waiting would take the sidecar for broken.
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
	if requests == nil {
		c.Open(accepted, s.clock, nil)
	} else {
		c.Open(accepted, s.clock, c)
	}
	return c
}

// connState is told by fasthttp where it is with each connection.
func connState(nc net.Conn, state fasthttp.ConnState) {
	c, ok := nc.(*clientConn)
	if !ok {
		return
	}
	switch state {
	case fasthttp.StateActive: // the first byte is here
		c.RequestBegun()
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
