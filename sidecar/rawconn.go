package sidecar

import (
	"io"
	"net"
	"os"
	"syscall"
)

// rawConn reads and writes a socket without telling Go's scheduler of the system
// calls. A socket in Go never waits in them. But as long as the scheduler is told
// of any, a thread of its own wakes up again and again, 15,600 times a second at
// 8,000 requests, to see whether one takes long: a third of the CPU there, and up
// to a tenth at full load (docs/BENCHMARKS.md). rawcall.go has the calls.
//
// One goroutine may read and one write at a time. Deadlines and Close act as they
// do on the socket.
type rawConn struct {
	conn    syscall.RawConn // nil: there is no socket
	in, out transfer
}

// transfer is a read or write under way.
type transfer struct {
	try    func(fd uintptr) bool // made once, not for each transfer
	left   []byte                // to be filled, or to be sent
	behind []byte                // to be sent behind that
	parts  parts
	n      int // bytes transferred
	err    error
	waited bool
}

// mostAtOnce is how many bytes one system call moves, in some 10 µs. The goroutine
// can't be interrupted for as long.
const mostAtOnce = 64 << 10

// open makes r read and write conn, if that is a socket.
func (r *rawConn) open(conn net.Conn) {
	if c, ok := conn.(syscall.Conn); ok {
		r.in.try, r.out.try = r.in.tryRead, r.out.tryWrite
		r.conn, _ = c.SyscallConn()
	}
}

// read reads what has come, and waits for it if there is nothing yet. It tells
// whether it had to.
func (r *rawConn) read(p []byte) (n int, waited bool, err error) {
	r.in.begin(p, nil)
	err = r.conn.Read(r.in.try)
	if n, err = r.in.end("read", err); n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return n, r.in.waited, err
}

// write sends all of p and of what is behind it, unless it fails.
func (r *rawConn) write(p, behind []byte) (int, error) {
	if len(p) == 0 {
		p, behind = behind, nil
	}
	r.out.begin(p, behind)
	return r.out.end("write", r.conn.Write(r.out.try))
}

func (t *transfer) begin(p, behind []byte) {
	t.left, t.behind, t.n, t.err, t.waited = p, behind, 0, nil, false
}

// end returns what came of it. err is that of waiting.
func (t *transfer) end(op string, err error) (int, error) {
	t.left, t.behind = nil, nil
	if err == nil && t.err != nil {
		err = &net.OpError{Op: op, Err: os.NewSyscallError(op, t.err)}
	}
	return t.n, err
}

// tryRead returns false if nothing has come.
func (t *transfer) tryRead(fd uintptr) bool { return t.move((*transfer).receive, fd) }

// tryWrite returns false if there is no room for what is left.
func (t *transfer) tryWrite(fd uintptr) bool {
	for len(t.left) > 0 && t.err == nil {
		if !t.move((*transfer).send, fd) {
			return false
		}
	}
	return true
}

// move makes one system call, again if a signal interrupts it. It returns false if
// that can't be done without waiting.
func (t *transfer) move(call func(*transfer, uintptr) (int, error), fd uintptr) bool {
	for {
		n, err := call(t, fd)
		switch err {
		case nil:
			t.advance(n)
			return true
		case syscall.EINTR:
		case syscall.EAGAIN:
			t.waited = true
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
	if len(t.behind) == 0 || len(t.left) > mostAtOnce {
		return rawWrite(fd, atOnce(t.left))
	}
	return rawWriteBoth(fd, atOnce(t.left), atOnce(t.behind), &t.parts)
}

// atOnce returns as much of p as one system call is to move.
func atOnce(p []byte) []byte { return p[:min(len(p), mostAtOnce)] }
