package conn

import (
	"bytes"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"rankcache/internal/httpserve"
)

// Hooks sees requests' bytes before the parser does, on the goroutine that reads the connection.
type Hooks interface {
	// OnBytes is called with the first bytes that come after [Conn.AnswerSent]. If it answers them the parser never
	// sees them; else it gets the first n, with the error if there is one, and the others when it reads again.
	OnBytes(p []byte) (n int, answered bool, err error)
	// OnMore is the same for more bytes of a request that has begun, and for the first bytes of the connection.
	OnMore(p []byte) (n int, err error)
	// OnNext is called before the next request is read: the parser has consumed all bytes that came before.
	OnNext()
}

// The stages of a [Conn] beside those that all servers have.
const (
	Uninterruptible = httpserve.Answering + 1 + iota // an answer that Close does not cut off
	Closing                                          // the same, after Close was called
)

// Conn is one connection of a client. It stands between the socket and the parser of the protocol and ends connections
// of slow clients. A parser could set the deadlines itself, at the price of three timers and three readings of the
// clock per request; here a request that comes in one piece costs none of them.
//
// The goroutine that serves the connection calls the methods; any may call Close, Place and [Conn.Enter].
type Conn struct {
	net.Conn
	hooks Hooks
	clock *Clock

	socket socket

	place atomic.Int64 // see Place

	held    []byte // read from the socket, not yet seen by the parser
	silent  bool   // nothing has come yet
	idle    bool   // between two requests
	armed   bool   // the deadline of the current request is set
	idleSet int64  // coarse time at which the idle deadline in force was set, 0: none is
	sendSet int64  // the same of the write deadline
}

// Open makes c serve the accepted connection.
func (c *Conn) Open(accepted net.Conn, clock *Clock, hooks Hooks) {
	c.Conn, c.clock, c.hooks, c.silent = accepted, clock, hooks, true
	c.socket.open(accepted)
	c.Enter(httpserve.ReadingHead)
}

// Read returns the next bytes that the parser has to see. Requests that the hooks answer are not among them. A
// connection that ends before anything came ends with io.EOF, whatever the reason: there is no request to answer.
func (c *Conn) Read(p []byte) (int, error) {
	if !c.idle { // more of a request, or the first
		n, err := c.readSome(p)
		if err != nil {
			return n, err
		}
		most := n
		n, err = c.hooks.OnMore(p[:most])
		c.hold(p[:most], n)
		return n, err
	}
	c.hooks.OnNext()
	for {
		most, err := c.readSome(p)
		if err != nil {
			return most, err
		}
		n, answered, err := c.hooks.OnBytes(p[:most])
		switch {
		case err != nil && answered:
			return 0, err
		case answered:
			c.hold(p[:most], most)
		default:
			c.hold(p[:most], n)
			return n, err
		}
	}
}

// hold keeps the bytes behind the first n of p, which were read last.
func (c *Conn) hold(p []byte, n int) {
	switch {
	case len(c.held) > 0:
		c.held = c.held[n:]
	case n < len(p):
		c.held = bytes.Clone(p[n:])
	}
}

// readSome waits for the next request as long as connections may be idle, and for the rest of one that has begun until
// one deadline for all of it. Held bytes come first, and is held until [Conn.hold] is called.
func (c *Conn) readSome(p []byte) (int, error) {
	if len(c.held) > 0 {
		return copy(p, c.held), nil
	}
	var err error
	switch {
	case c.idle && c.clock.due(&c.idleSet):
		err = c.SetReadDeadline(time.Now().Add(c.clock.limits.Idle))
	case !c.idle && !c.armed:
		c.armed, c.idleSet = true, 0
		err = c.SetReadDeadline(time.Now().Add(c.clock.limits.Read))
	}
	if err != nil {
		return 0, err
	}
	n, err := c.read(p)
	if c.silent && err != nil {
		err = io.EOF
	}
	c.silent = false
	return n, err
}

func (c *Conn) read(p []byte) (int, error) {
	if !c.socket.isOpen() {
		return c.Conn.Read(p)
	}
	return c.socket.read(p)
}

// Write sends p, which is an answer or a part of one; each has the whole write time-out.
func (c *Conn) Write(p []byte) (int, error) {
	if err := c.limitWrite(); err != nil {
		return 0, err
	}
	if !c.socket.isOpen() {
		return c.Conn.Write(p)
	}
	return c.socket.write(p, nil)
}

// WriteBoth sends an answer that consists of head and body by one system call.
func (c *Conn) WriteBoth(head, body []byte) error {
	err := c.limitWrite()
	switch {
	case err != nil:
	case c.socket.isOpen():
		_, err = c.socket.write(head, body)
	default:
		_, err = c.Conn.Write(slices.Concat(head, body))
	}
	return err
}

func (c *Conn) limitWrite() error {
	if !c.clock.due(&c.sendSet) {
		return nil
	}
	return c.SetWriteDeadline(time.Now().Add(c.clock.limits.Write))
}

// Linger ends the sending and reads the client's bytes until they end or the limits are reached: closed with bytes
// unread, the connection is reset, and the answer may be lost. Others come before it meanwhile.
func (c *Conn) Linger(bytes int64, limit time.Duration) {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.Enter(httpserve.ReadingHead)
	if c.SetReadDeadline(time.Now().Add(limit)) == nil {
		_, _ = io.CopyN(io.Discard, c.Conn, bytes) // how it ends does not matter
	}
}

// RequestBegun is called when the parser has the first byte of a request.
func (c *Conn) RequestBegun() {
	if c.idle {
		c.Enter(httpserve.ReadingHead)
	}
	c.idle, c.armed = false, false
}

// AnswerSent is called when the answer to a request was sent.
func (c *Conn) AnswerSent() {
	c.idle = true
	c.Enter(httpserve.Idle)
}

// BeginAnswer is called before the hooks send an answer; what it returns is for [Conn.EndAnswer].
func (c *Conn) BeginAnswer() httpserve.Place {
	place := c.placeNow(Uninterruptible)
	c.place.Store(int64(place))
	return place
}

// EndAnswer is called when that answer was sent. It closes the connection, with an error, if Close was called.
func (c *Conn) EndAnswer(begun httpserve.Place) error {
	if c.leave(begun, httpserve.Idle) {
		return nil
	}
	_ = c.Conn.Close()
	return net.ErrClosed
}

// Close closes the connection, after the answer between BeginAnswer and EndAnswer, within the write time-out.
func (c *Conn) Close() error {
	if now := c.Place(); now.Stage() == Uninterruptible && c.leave(now, Closing) {
		return nil
	}
	return c.Conn.Close()
}

// Place returns how far c is with a request, and since when.
func (c *Conn) Place() httpserve.Place { return httpserve.Place(c.place.Load()) }

// Enter moves c to a stage.
func (c *Conn) Enter(s httpserve.Stage) { c.place.Store(int64(c.placeNow(s))) }

// leave is Enter, unless c has left the place where it was.
func (c *Conn) leave(was httpserve.Place, s httpserve.Stage) bool {
	return c.place.CompareAndSwap(int64(was), int64(c.placeNow(s)))
}

func (c *Conn) placeNow(s httpserve.Stage) httpserve.Place {
	return httpserve.PlaceOf(s, c.clock.now.Load())
}
