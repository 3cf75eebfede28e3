//go:build unix

package resp

import (
	"crypto/tls"
	"net"
	"syscall"
	"time"
)

// idleUnchecked is how long an upstream is taken to be there without a look.
const idleUnchecked = 50 * time.Millisecond

// alive reports whether nobody has closed the connection since it was used: what is sent to
// one that is closed is lost, and whether it was executed is unknown.
func alive(c net.Conn, used time.Time) bool {
	if time.Since(used) < idleUnchecked {
		return true
	}
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	sc, ok := c.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	open := true
	err = raw.Read(func(fd uintptr) bool {
		var room [1]byte
		n, _, err := syscall.Recvfrom(int(fd), room[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		open = n > 0 || err == syscall.EAGAIN || err == syscall.EINTR
		return true
	})
	return open && err == nil
}
