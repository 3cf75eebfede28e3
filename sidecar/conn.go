package sidecar

import (
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"rankcache/internal/httpserve"
)

// dataConn stands between a socket and the HTTP library. Requests that are known it
// answers itself; the library never sees them. And it cuts off slow clients: the
// library would do that too, at the price of three timers set and three looks at the
// clock for each request; here a request that comes in one piece costs none of them.
//
// Its methods are called by the goroutine that serves the connection; any may call
// Close.
type dataConn struct {
	net.Conn
	server  *DataServer
	repeats *repeats // of the listener
	id      uint64   // tells connections apart where they count

	raw    rawConn
	turn   turn
	lesson lesson
	call   *call  // of the connection's requests, which come one after the other
	head   []byte // room for that of an answer

	place atomic.Int64 // see Place; only this connection's goroutine and Close change it

	idle    bool  // between two requests
	armed   bool  // the deadline of the request in hand is set
	idleSet int64 // coarse time at which the idle deadline in force was set, 0: none is
	sendSet int64 // the same of the write deadline
}

// Read returns the next bytes that the library has to see: requests that are known
// are answered here.
func (c *dataConn) Read(p []byte) (int, error) {
	if !c.idle { // more of a request, or the first
		c.lesson.spoil()
		return c.readSome(p)
	}
	c.lesson.end(c.repeats)
	for {
		n, err := c.readSome(p)
		if err != nil {
			return n, err
		}
		q := c.lesson.begin(c.repeats, p[:n])
		if q == nil {
			return n, nil
		}
		switch done, err := c.repeat(q); {
		case err != nil:
			return 0, err
		case !done:
			return n, nil
		}
	}
}

// readSome waits for the next request as long as connections may be idle, and for
// the rest of one that has begun until one deadline for all of it.
func (c *dataConn) readSome(p []byte) (int, error) {
	var err error
	switch {
	case c.idle && c.server.limits.due(&c.idleSet):
		err = c.SetReadDeadline(time.Now().Add(c.server.limits.idle))
	case !c.idle && !c.armed:
		c.armed, c.idleSet = true, 0
		err = c.SetReadDeadline(time.Now().Add(c.server.limits.read))
	}
	if err != nil {
		return 0, err
	}
	return c.read(p)
}

// read lets the other connections go first when that is likely to pay.
func (c *dataConn) read(p []byte) (int, error) {
	if c.raw.conn == nil {
		return c.Conn.Read(p)
	}
	gaveWay := c.idle && c.turn.due()
	if gaveWay {
		runtime.Gosched()
	}
	n, waited, err := c.raw.read(p)
	if gaveWay {
		c.turn.learn(waited)
	}
	return n, err
}

// Write gives the client time for p, which is an answer or a good part of one.
func (c *dataConn) Write(p []byte) (int, error) {
	if err := c.limitWrite(); err != nil {
		return 0, err
	}
	if c.raw.conn == nil {
		return c.Conn.Write(p)
	}
	return c.raw.write(p, nil)
}

func (c *dataConn) limitWrite() error {
	if !c.server.limits.due(&c.sendSet) {
		return nil
	}
	return c.SetWriteDeadline(time.Now().Add(c.server.limits.write))
}

// send writes the answer that c.head begins and body ends.
func (c *dataConn) send(body []byte) error {
	err := c.limitWrite()
	switch {
	case err != nil:
	case c.raw.conn != nil:
		_, err = c.raw.write(c.head, body)
	default:
		_, err = c.Conn.Write(append(c.head, body...))
	}
	return err
}

// Close closes the connection, unless a known request is being answered: then that
// is finished first, in the time that answers have.
func (c *dataConn) Close() error {
	if now := c.Place(); now.Stage() == repeating && c.leave(now, ending) {
		return nil
	}
	return c.Conn.Close()
}

// state is told where the server is with the connection.
func (c *dataConn) state(s fasthttp.ConnState) {
	switch s {
	case fasthttp.StateActive: // the first byte is here, except of the first request
		if c.idle {
			c.enter(httpserve.ReadingHead)
		}
		c.lesson.next()
		c.idle, c.armed = false, false
	case fasthttp.StateIdle: // the answer has been written
		c.idle = true
		if c.call != nil {
			c.call.shrink()
		}
		c.enter(httpserve.Idle)
	}
}
