package sidecar

import (
	"net"
	"strconv"
	"sync"
	"time"
)

// cappedListener accepts no more connections than the server may have open. At
// the cap, idle ones are closed to make room: their clients connect again, while
// a new one would fail. If all are busy, the new one is told so and closed; left
// waiting it would look like a hanging sidecar.
type cappedListener struct {
	net.Listener
	server  *DataServer
	repeats *repeats
}

func (l cappedListener) Accept() (net.Conn, error) {
	s := l.server
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if s.conns.len() < s.cfg.MaxConns || s.conns.makeRoom(s.limits.now.Load()-int64(s.cfg.SpareAfter), s.cfg.MaxConns/8+1) {
			return s.conns.add(s.newConn(conn, l.repeats)), nil
		}
		s.turnAway(conn)
	}
}

// newConn returns a connection that waits for its first request.
func (s *DataServer) newConn(conn net.Conn, known *repeats) *dataConn {
	c := &dataConn{Conn: conn, server: s, repeats: known}
	c.raw.open(conn)
	c.waiting.Store(max(s.limits.now.Load(), 1))
	return c
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

// connSet is the connections that are open.
type connSet struct {
	mu   sync.Mutex
	open map[*dataConn]struct{}
	last uint64 // id given
}

func (s *connSet) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

func (s *connSet) add(c *dataConn) *dataConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	c.id = s.last
	if s.open == nil {
		s.open = make(map[*dataConn]struct{})
	}
	s.open[c] = struct{}{}
	return c
}

func (s *connSet) remove(c *dataConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// makeRoom closes up to most connections that have waited for a request since
// before the coarse time, and reports whether there were any. It takes many at
// once, so that a flood of new ones does not look through all for each.
func (s *connSet) makeRoom(before int64, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	closed := 0
	for c := range s.open {
		if since := c.waiting.Load(); since > 0 && since <= before && closed < most {
			_ = c.Close()
			delete(s.open, c)
			closed++
		}
	}
	return closed > 0
}
