package sidecar

import (
	"net"

	"rankcache/internal/httpserve"
)

// cappedListener accepts no more connections than the server may have open: at the
// cap one gives way to each new one. Its client connects again, while a new one that
// is refused or left waiting would take the sidecar for broken.
type cappedListener struct {
	net.Listener
	server  *DataServer
	repeats *repeats
}

func (l cappedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := l.server.newConn(conn, l.repeats)
	l.server.conns.Add(c)
	return c, nil
}

// newConn returns a connection that waits for its first request.
func (s *DataServer) newConn(conn net.Conn, known *repeats) *dataConn {
	c := &dataConn{Conn: conn, server: s, repeats: known, id: s.lastConn.Add(1)}
	c.raw.open(conn)
	c.enter(httpserve.ReadingHead)
	return c
}

// What dataConn.place says beside the stages that all servers have. The library does
// not say when a head is complete, so a body that is still to come counts as one.
const (
	repeating = httpserve.Answering + 1 + iota // a known request is being answered
	ending                                     // the same, and the connection is to be closed then
)

// Place says where c is in the order of giving way.
func (c *dataConn) Place() httpserve.Place { return httpserve.Place(c.place.Load()) }

func (c *dataConn) enter(s httpserve.Stage) { c.place.Store(int64(c.placeNow(s))) }

// leave is enter, unless c is not any more in the place where it was.
func (c *dataConn) leave(was httpserve.Place, s httpserve.Stage) bool {
	return c.place.CompareAndSwap(int64(was), int64(c.placeNow(s)))
}

func (c *dataConn) placeNow(s httpserve.Stage) httpserve.Place {
	return httpserve.PlaceOf(s, c.server.limits.now.Load())
}
