package load

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// replyRoom is the room for a reply at first, in bytes; it grows with what comes.
const replyRoom = 32 << 10

// conn is one connection with at most one request under way.
type conn struct {
	fd   int
	due  int64 // when the request under way was due, ns on the loop's clock
	free int64 // since when it has waited for a request, if it does
	busy bool
	left int // replies that the request under way still gets
	buf  []byte
	n    int // bytes of buf that were read and not yet used
}

// dial connects c, waiting for it, and makes the socket non-blocking.
func (c *conn) dial(t Target) error {
	fd, to, err := socket(t)
	if err != nil {
		return err
	}
	if err := errors.Join(unix.Connect(fd, to), unix.SetNonblock(fd, true)); err != nil {
		unix.Close(fd)
		return fmt.Errorf("connect to %s: %w", t.Addr, err)
	}
	if t.Network == "tcp" {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // without it: slower, not wrong
	}
	c.fd, c.n, c.busy = fd, 0, false
	if c.buf == nil {
		c.buf = make([]byte, replyRoom)
	}
	return nil
}

func socket(t Target) (fd int, to unix.Sockaddr, err error) {
	if t.Network == "unix" {
		fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		return fd, &unix.SockaddrUnix{Name: t.Addr}, err
	}
	addr, err := net.ResolveTCPAddr("tcp4", t.Addr)
	if err != nil {
		return 0, nil, fmt.Errorf("address of the server: %w", err)
	}
	at := &unix.SockaddrInet4{Port: addr.Port}
	copy(at.Addr[:], addr.IP.To4())
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	return fd, at, err
}

// ask writes a request. It is small and the connection is idle, so that a socket
// that does not take it whole is broken.
func (c *conn) ask(request []byte, replies int, due int64) error {
	n, err := unix.Write(c.fd, request)
	if err != nil || n < len(request) {
		return fmt.Errorf("write %d of %d bytes: %w", n, len(request), err)
	}
	c.busy, c.left, c.due = true, max(replies, 1), due
	return nil
}

// read takes what has arrived.
func (c *conn) read() error {
	if c.n == len(c.buf) {
		c.buf = append(c.buf, make([]byte, len(c.buf))...)
	}
	n, err := unix.Read(c.fd, c.buf[c.n:])
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return nil
	case err != nil:
		return fmt.Errorf("read: %w", err)
	case n == 0:
		return errors.New("the server closed the connection")
	}
	c.n += n
	return nil
}

// answered uses up the replies that are there, and reports whether the request
// under way has all of its.
func (c *conn) answered(p Proto, q *Question) (bool, error) {
	at := 0
	for c.left > 0 {
		r, err := p.read(c.buf[at:c.n])
		if err == errShort {
			break
		}
		if err == nil {
			err = q.good(r)
		}
		if err != nil {
			return false, err
		}
		at += r.size
		c.left--
	}
	c.n = copy(c.buf, c.buf[at:c.n])
	if c.left == 0 && c.n > 0 {
		return false, fmt.Errorf("%d bytes behind the reply: %.40q", c.n, c.buf[:c.n])
	}
	c.busy = c.left > 0
	return !c.busy, nil
}
