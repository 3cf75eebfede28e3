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
	n      int                   // bytes transferred
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
	r.in.begin(p)
	err = r.conn.Read(r.in.try)
	if n, err = r.in.end("read", err); n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return n, r.in.waited, err
}

// write sends all of p, unless it fails.
func (r *rawConn) write(p []byte) (int, error) {
	r.out.begin(p)
	return r.out.end("write", r.conn.Write(r.out.try))
}

func (t *transfer) begin(p []byte) { t.left, t.n, t.err, t.waited = p, 0, nil, false }

// end returns what came of it. err is that of waiting.
func (t *transfer) end(op string, err error) (int, error) {
	t.left = nil
	if err == nil && t.err != nil {
		err = &net.OpError{Op: op, Err: os.NewSyscallError(op, t.err)}
	}
	return t.n, err
}

// tryRead returns false if nothing has come.
func (t *transfer) tryRead(fd uintptr) bool { return t.move(rawRead, fd) }

// tryWrite returns false if there is no room for what is left.
func (t *transfer) tryWrite(fd uintptr) bool {
	for len(t.left) > 0 && t.err == nil {
		if !t.move(rawWrite, fd) {
			return false
		}
	}
	return true
}

// move makes one system call, again if a signal interrupts it. It returns false if
// that can't be done without waiting.
func (t *transfer) move(call func(fd uintptr, p []byte) (int, error), fd uintptr) bool {
	p := t.left[:min(len(t.left), mostAtOnce)]
	for {
		n, err := call(fd, p)
		switch err {
		case nil:
			t.n += n
			t.left = t.left[n:]
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
