package sidecar

import (
	"io"
	"net"
	"os"
	"syscall"
)

// rawReader reads a socket as its Read does, and tells whether it had to wait. One
// goroutine may read at a time; deadlines and Close act as they do on Read.
type rawReader struct {
	conn   syscall.RawConn // nil: there is no socket
	try    func(fd uintptr) bool
	buf    []byte
	n      int
	err    error
	waited bool
}

// open makes r read conn, if that is a socket.
func (r *rawReader) open(conn net.Conn) {
	if c, ok := conn.(syscall.Conn); ok {
		r.try = r.tryOnce // made once, not for each read
		r.conn, _ = c.SyscallConn()
	}
}

// read reads what has come, and waits for it if there is nothing yet.
func (r *rawReader) read(p []byte) (n int, waited bool, err error) {
	r.buf, r.waited = p, false
	err = r.conn.Read(r.try)
	r.buf = nil
	switch {
	case err != nil:
		return 0, r.waited, err
	case r.err != nil:
		return 0, r.waited, &net.OpError{Op: "read", Err: os.NewSyscallError("read", r.err)}
	case r.n == 0 && len(p) > 0:
		return 0, r.waited, io.EOF
	}
	return r.n, r.waited, nil
}

// tryOnce returns false if nothing has come.
func (r *rawReader) tryOnce(fd uintptr) bool {
	for {
		r.n, r.err = syscall.Read(int(fd), r.buf)
		switch r.err {
		case syscall.EINTR:
		case syscall.EAGAIN:
			r.waited = true
			return false
		default:
			return true
		}
	}
}
