//go:build !linux || !(amd64 || arm64)

package conn

import (
	"errors"
	"net"
	"syscall"
)

// socket is never open here: connections are read and written through net.
type socket struct{}

func (*socket) open(net.Conn) {}

func (*socket) isOpen() bool { return false }

func (*socket) read([]byte) (n int, waited bool, err error) { return 0, false, errors.ErrUnsupported }

// TryWrite writes what a socket that never blocks takes at once, and returns how many bytes that
// are; [syscall.EAGAIN] if it takes none.
func TryWrite(fd uintptr, p []byte) (int, error) { return syscall.Write(int(fd), p) }

func (*socket) write(_, _ []byte) (int, error) { return 0, errors.ErrUnsupported }
