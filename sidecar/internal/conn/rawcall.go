//go:build linux && (amd64 || arm64) && !race

package conn

import (
	"syscall"
	"unsafe"
)

// rawRead, rawWrite and rawWriteBoth are system calls that Go's scheduler is not notified of. Their count is valid only
// without an error. recvfrom, sendto and sendmsg cost less than read, write and writev (docs/speed/READS.md).

func rawRead(fd uintptr, p []byte) (int, error) { return rawCall(syscall.SYS_RECVFROM, fd, p) }

func rawWrite(fd uintptr, p []byte) (int, error) { return rawCall(syscall.SYS_SENDTO, fd, p) }

func rawCall(trap, fd uintptr, p []byte) (int, error) {
	n, _, errno := syscall.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
	return counted(n, errno)
}

// message names two pieces to the kernel. It must not stand on the stack, which may move.
type message struct {
	header syscall.Msghdr
	pieces [2]syscall.Iovec
}

// rawWriteBoth writes p and then behind, neither of which is empty; m is room for the call.
func rawWriteBoth(fd uintptr, p, behind []byte, m *message) (int, error) {
	for i, piece := range [...][]byte{p, behind} {
		m.pieces[i].Base = unsafe.SliceData(piece)
		m.pieces[i].SetLen(len(piece))
	}
	m.header.Iov, m.header.Iovlen = &m.pieces[0], 2
	n, _, errno := syscall.RawSyscall(syscall.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&m.header)), 0)
	*m = message{} // so that it does not keep the page in memory
	return counted(n, errno)
}

func counted(n uintptr, errno syscall.Errno) (int, error) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
