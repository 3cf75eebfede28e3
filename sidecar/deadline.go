package sidecar

import (
	"net"
	"time"
)

// lazyConn sets deadlines when it is about to read or write, and only if the one
// in force is not near enough. The server asks for three per request: idle until
// the next one begins, then reading it, then writing the answer. Setting each
// costs a timer, and most requests come in one piece and need none of them anew.
// One goroutine reads, writes and sets deadlines; any may close.
type lazyConn struct {
	net.Conn
	slack       time.Duration // by how much a deadline may come early
	read, write deadline
}

// deadline is one asked for and the one in force.
type deadline struct{ want, have time.Time }

// due reports whether the deadline in force has to be changed, and takes it that
// it is.
func (d *deadline) due(slack time.Duration) bool {
	if early := d.want.Sub(d.have); early >= 0 && early < slack && !d.want.IsZero() == !d.have.IsZero() {
		return false
	}
	d.have = d.want
	return true
}

func (c *lazyConn) SetReadDeadline(t time.Time) error {
	c.read.want = t
	return nil
}

func (c *lazyConn) SetWriteDeadline(t time.Time) error {
	c.write.want = t
	return nil
}

func (c *lazyConn) SetDeadline(t time.Time) error {
	c.read.want, c.write.want = t, t
	return nil
}

func (c *lazyConn) Read(p []byte) (int, error) {
	if c.read.due(c.slack) {
		if err := c.Conn.SetReadDeadline(c.read.have); err != nil {
			return 0, err
		}
	}
	return c.Conn.Read(p)
}

func (c *lazyConn) Write(p []byte) (int, error) {
	if c.write.due(c.slack) {
		if err := c.Conn.SetWriteDeadline(c.write.have); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}
