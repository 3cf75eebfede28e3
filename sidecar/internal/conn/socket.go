//go:build linux && (amd64 || arm64)

package conn

import (
	"io"
	"net"
	"os"
	"syscall"
)

// socket reads and writes a socket without telling Go's scheduler of the system calls. A socket in Go never blocks in
// them. But while the scheduler is notified of any, its monitor thread wakes up again and again, 15,600 times a second
// at 8,000 requests, to see whether one blocks: a third of the CPU there, and up to a tenth at full load
// (docs/speed/READS.md).
//
// One goroutine may read and one write at a time. Deadlines and Close act as they do on a net.Conn.
type socket struct {
	conn    syscall.RawConn // nil: there is no socket
	in, out transfer
}

// transfer is a read or write under way.
type transfer struct {
	try     func(fd uintptr) bool // made once, not for each transfer
	left    []byte                // to be filled, or to be sent
	behind  []byte                // to be sent behind that
	message message
	n       int // bytes transferred
	err     error
}

// maxAtOnce is how many bytes one system call moves, in some 10 µs. The goroutine can't be interrupted for as long.
const maxAtOnce = 64 << 10

func (s *socket) open(conn net.Conn) {
	if c, ok := conn.(syscall.Conn); ok {
		s.in.try, s.out.try = s.in.tryRead, s.out.tryWrite
		s.conn, _ = c.SyscallConn()
	}
}

func (s *socket) isOpen() bool { return s.conn != nil }

// read reads the bytes that have arrived, and waits if there are none yet.
func (s *socket) read(p []byte) (n int, err error) {
	s.in.begin(p, nil)
	err = s.conn.Read(s.in.try)
	if n, err = s.in.end("read", err); n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return n, err
}

// write sends all of p and then all of behind, unless it fails.
func (s *socket) write(p, behind []byte) (int, error) {
	if len(p) == 0 {
		p, behind = behind, nil
	}
	s.out.begin(p, behind)
	return s.out.end("write", s.conn.Write(s.out.try))
}

func (t *transfer) begin(p, behind []byte) { t.left, t.behind, t.n, t.err = p, behind, 0, nil }

// end returns the bytes transferred. err is that of waiting.
func (t *transfer) end(op string, err error) (int, error) {
	t.left, t.behind = nil, nil
	if err == nil && t.err != nil {
		err = &net.OpError{Op: op, Err: os.NewSyscallError(op, t.err)}
	}
	return t.n, err
}

// tryRead returns false if nothing has come.
func (t *transfer) tryRead(fd uintptr) bool { return t.move((*transfer).receive, fd) }

// tryWrite returns false if the socket has no room for the rest.
func (t *transfer) tryWrite(fd uintptr) bool {
	for len(t.left) > 0 && t.err == nil {
		if !t.move((*transfer).send, fd) {
			return false
		}
	}
	return true
}

// move makes one system call, again if a signal interrupts it. It returns false if the call would have to wait.
func (t *transfer) move(call func(*transfer, uintptr) (int, error), fd uintptr) bool {
	for {
		n, err := call(t, fd)
		switch err {
		case nil:
			t.advance(n)
			return true
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false
		default:
			t.err = err
			return true
		}
	}
}

func (t *transfer) advance(n int) {
	t.n += n
	if past := n - len(t.left); past >= 0 {
		t.left, t.behind = t.behind[past:], nil
		return
	}
	t.left = t.left[n:]
}

func (t *transfer) receive(fd uintptr) (int, error) { return rawRead(fd, atOnce(t.left)) }

func (t *transfer) send(fd uintptr) (int, error) {
	if len(t.behind) == 0 || len(t.left) > maxAtOnce {
		return rawWrite(fd, atOnce(t.left))
	}
	return rawWriteBoth(fd, atOnce(t.left), atOnce(t.behind), &t.message)
}

// atOnce returns as much of p as one system call may move.
func atOnce(p []byte) []byte { return p[:min(len(p), maxAtOnce)] }
