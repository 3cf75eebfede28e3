package sidecar

import (
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// timedConn cuts off slow clients. The HTTP library would do that too, at the
// price of three timers set and three looks at the clock for each request; here
// a request that comes in one piece costs none of them. Its methods are called by
// the goroutine that serves the connection; any may call Close.
type timedConn struct {
	net.Conn
	limits *timeLimits
	call   *call // of the connection's requests, which come one after the other
	raw    rawConn
	turn   turn

	// waiting is the coarse time since when no byte of a request has come, 0
	// while there is one: who makes room looks at it.
	waiting atomic.Int64

	idle    bool  // between two requests
	armed   bool  // the deadline of the request in hand is set
	idleSet int64 // coarse time at which the idle deadline in force was set, 0: none is
	sendSet int64 // the same of the write deadline
}

// timeLimits is shared by the connections of one server. Time-outs may come
// early, by at most a sixth of the shortest of them.
type timeLimits struct {
	read, write, idle time.Duration
	began             time.Time    // where the coarse time begins
	now               atomic.Int64 // coarse time, in nanoseconds
}

// slack is how old a deadline may be and still serve for one set now.
func (l *timeLimits) slack() time.Duration { return min(l.read, l.write, l.idle) / 9 }

// tick moves the coarse time until stop is closed. Several may do so.
func (l *timeLimits) tick(stop <-chan struct{}) {
	ticker := time.NewTicker(l.slack() / 2)
	defer ticker.Stop()
	for {
		l.now.Store(int64(time.Since(l.began)))
		select {
		case <-ticker.C:
		case <-stop:
			return
		}
	}
}

// due reports whether a deadline set at the coarse time *set is too old, and
// takes it that it is set now.
func (l *timeLimits) due(set *int64) bool {
	now := l.now.Load()
	if *set != 0 && now-*set < int64(l.slack()) {
		return false
	}
	*set = max(now, 1)
	return true
}

// Read waits for the next request as long as connections may be idle, and for
// the rest of one that has begun until one deadline for all of it.
func (c *timedConn) Read(p []byte) (int, error) {
	var err error
	switch {
	case c.idle && c.limits.due(&c.idleSet):
		err = c.SetReadDeadline(time.Now().Add(c.limits.idle))
	case !c.idle && !c.armed:
		c.armed, c.idleSet = true, 0
		err = c.SetReadDeadline(time.Now().Add(c.limits.read))
	}
	if err != nil {
		return 0, err
	}
	n, err := c.read(p)
	if !c.idle && n > 0 && c.waiting.Load() != 0 { // the first request has begun
		c.waiting.Store(0)
	}
	return n, err
}

// read lets the other connections go first when that is likely to pay.
func (c *timedConn) read(p []byte) (int, error) {
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
func (c *timedConn) Write(p []byte) (int, error) {
	if c.limits.due(&c.sendSet) {
		if err := c.SetWriteDeadline(time.Now().Add(c.limits.write)); err != nil {
			return 0, err
		}
	}
	if c.raw.conn == nil {
		return c.Conn.Write(p)
	}
	return c.raw.write(p)
}

// state is told where the server is with the connection.
func (c *timedConn) state(s fasthttp.ConnState) {
	switch s {
	case fasthttp.StateActive: // the first byte is here, except of the first request
		if c.idle {
			c.waiting.Store(0)
		}
		c.idle, c.armed = false, false
	case fasthttp.StateIdle: // the answer has been written
		c.idle = true
		if c.call != nil {
			c.call.shrink()
		}
		c.waiting.Store(max(c.limits.now.Load(), 1))
	}
}
