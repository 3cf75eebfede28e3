package resp

import (
	"errors"

	"rankcache/internal/httpserve"
	"rankcache/sidecar/internal/conn"
)

const (
	firstRoom = 4 << 10  // bytes of a connection's buffer at first
	keepRoom  = 16 << 10 // bytes of it that a connection keeps
)

type buffer struct {
	in   []byte
	from int   // of what is not parsed
	held share // of in
	args share // of the places of its arguments
}

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

var errHeld = errors.New("too many large commands at once") // ends a connection whose large command is one too many

// grow makes room for so many bytes, if the large commands of all connections leave it.
func (b *buffer) grow(client *conn.Conn, room int) error {
	if room > keepRoom && !b.held.set(int64(room)) {
		return refuseHeld(client)
	}
	b.in = append(make([]byte, 0, room), b.in...)
	return nil
}

func refuseHeld(client *conn.Conn) error {
	_, _ = client.Write([]byte("-ERR RANKCACHE " + errHeld.Error() + "\r\n"))
	return errHeld
}

// shrink gives back the room of what was read.
func (b *buffer) shrink() {
	b.in = nil
	b.held.set(0)
}

// rest is called between two reads: it keeps the beginning of a command, and gives back what one large command took.
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
