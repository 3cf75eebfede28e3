package resp

import (
	"errors"

	"rankcache/internal/httpserve"
)

const (
	firstRoom = 4 << 10  // bytes of a connection's buffer at first
	keepRoom  = 16 << 10 // bytes of it that a connection keeps
)

// read reads more of what the client sends.
func (c *session) read() error {
	if len(c.in) == cap(c.in) {
		if err := c.grow(max(firstRoom, 2*len(c.in))); err != nil {
			return err
		}
	}
	empty := len(c.in) == 0
	n, err := c.Read(c.in[len(c.in):cap(c.in)])
	c.in = c.in[:len(c.in)+n]
	if n > 0 {
		if empty {
			c.RequestBegun()
		}
		return nil
	}
	return err
}

// errHeld ends a connection whose large command is one too many.
var errHeld = errors.New("too many large commands at once")

// grow makes room for so many bytes, if the large commands of all connections leave it.
func (c *session) grow(room int) error {
	if more := int64(room) - c.held; room > keepRoom {
		if c.server.held.Add(more) > maxHeld {
			c.server.held.Add(-more)
			_, _ = c.Write([]byte("-ERR RANKCACHE " + errHeld.Error() + "\r\n"))
			return errHeld
		}
		c.held += more
	}
	c.in = append(make([]byte, 0, room), c.in...)
	return nil
}

// shrink gives back the room of what was read.
func (c *session) shrink() {
	c.in = nil
	c.server.held.Add(-c.held)
	c.held = 0
}

// rest is called between two reads: it keeps the beginning of a command, and gives back
// what one large command took.
func (c *session) rest() {
	left := copy(c.in, c.in[c.from:])
	began := c.from > 0
	c.in, c.from = c.in[:left], 0
	if left == 0 && cap(c.in) > keepRoom {
		c.shrink()
	}
	if !began && left > 0 { // more of the command that had begun
		c.Enter(httpserve.ReadingHead)
		return
	}
	c.AnswerSent()
	if left > 0 {
		c.RequestBegun()
	}
}
