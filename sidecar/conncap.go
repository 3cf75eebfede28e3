package sidecar

import (
	"net"
	"strconv"
	"time"
)

// cappedListener accepts no more connections than the server may have open. One
// above that is told so and closed at once: left waiting it would look like a
// hanging sidecar.
type cappedListener struct {
	net.Listener
	server *DataServer
}

func (l cappedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		// The server counts a connection before it accepts the next.
		if l.server.conns.Load() < int64(l.server.cfg.MaxConns) {
			return &timedConn{Conn: conn, limits: &l.server.limits}, nil
		}
		l.server.turnAway(conn)
	}
}

// turnAway answers 503 without reading a request. The answer fits an empty
// socket buffer, so nothing is waited for.
func (s *DataServer) turnAway(conn net.Conn) {
	p := &problem{code: CodeOverloaded, detail: "too many connections are open to this listener"}
	body := p.append(nil)
	answer := "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: " + retryAfter +
		"\r\nContent-Type: application/problem+json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + string(body)
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = conn.Write([]byte(answer)) // it is being turned away in any case
	_ = conn.Close()
	s.counters.add(0, routeNone, firstProblem+outcome(p.code.index()))
}
