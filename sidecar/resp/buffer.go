package resp

import (
	"errors"
	"sync/atomic"

	"rankcache/internal/httpserve"
	"rankcache/sidecar/internal/conn"
)

const (
	firstRoom = 4 << 10  // bytes of a connection's buffer at first
	keepRoom  = 16 << 10 // bytes of it that a connection keeps
)

// buffer is what a connection has read.
type buffer struct {
	in    []byte
	from  int           // of what is not parsed
	held  int64         // bytes of in that count for maxHeld
	total *atomic.Int64 // held of all connections
}

// read reads more of what the client sends.
func (b *buffer) read(client *conn.Conn) error {
	if len(b.in) == cap(b.in) {
		if err := b.grow(client, max(firstRoom, 2*len(b.in))); err != nil {
			return err
		}
	}
	empty := len(b.in) == 0
	n, err := client.Read(b.in[len(b.in):cap(b.in)])
	b.in = b.in[:len(b.in)+n]
	if n > 0 {
		if empty {
			client.RequestBegun()
		}
		return nil
	}
	return err
}

// errHeld ends a connection whose large command is one too many.
var errHeld = errors.New("too many large commands at once")

// grow makes room for so many bytes, if the large commands of all connections leave it.
func (b *buffer) grow(client *conn.Conn, room int) error {
	if more := int64(room) - b.held; room > keepRoom {
		if b.total.Add(more) > maxHeld {
			b.total.Add(-more)
			_, _ = client.Write([]byte("-ERR RANKCACHE " + errHeld.Error() + "\r\n"))
			return errHeld
		}
		b.held += more
	}
	b.in = append(make([]byte, 0, room), b.in...)
	return nil
}

// shrink gives back the room of what was read.
func (b *buffer) shrink() {
	b.in = nil
	b.total.Add(-b.held)
	b.held = 0
}

// rest is called between two reads: it keeps the beginning of a command, and gives back
// what one large command took.
func (b *buffer) rest(client *conn.Conn) {
	left := copy(b.in, b.in[b.from:])
	began := b.from > 0
	b.in, b.from = b.in[:left], 0
	if left == 0 && cap(b.in) > keepRoom {
		b.shrink()
	}
	if !began && left > 0 { // more of the command that had begun
		client.Enter(httpserve.ReadingHead)
		return
	}
	client.AnswerSent()
	if left > 0 {
		client.RequestBegun()
	}
}
