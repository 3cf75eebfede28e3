//go:build unix

package resp

import (
	"net"
	"syscall"
)

// peek reports whether unread bytes have come, and whether the connection is open.
func peek(c net.Conn) (pending, open bool) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false, true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false, false
	}
	err = raw.Read(func(fd uintptr) bool {
		var room [1]byte
		n, _, err := syscall.Recvfrom(int(fd), room[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		pending, open = n > 0, n > 0 || err == syscall.EAGAIN || err == syscall.EINTR
		return true
	})
	return pending, open && err == nil
}
