//go:build !race

package sidecar

import (
	"syscall"
	"unsafe"
)

// rawRead, rawWrite and rawWriteBoth are system calls that Go's scheduler is not told
// of. What they return is valid only without an error. They are sockets' own calls,
// which cost less than read, write and writev (docs/BENCHMARKS.md).

func rawRead(fd uintptr, p []byte) (int, error) { return rawCall(syscall.SYS_RECVFROM, fd, p) }

func rawWrite(fd uintptr, p []byte) (int, error) { return rawCall(syscall.SYS_SENDTO, fd, p) }

func rawCall(trap, fd uintptr, p []byte) (int, error) {
	n, _, errno := syscall.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
	return counted(n, errno)
}

// parts is how two pieces to be sent are named to the kernel. It is not to stand on
// the stack, which may move.
type parts struct {
	header syscall.Msghdr
	pieces [2]syscall.Iovec
}

// rawWriteBoth writes p and what is behind it, neither of which is empty, with room
// for naming them.
func rawWriteBoth(fd uintptr, p, behind []byte, room *parts) (int, error) {
	for i, piece := range [...][]byte{p, behind} {
		room.pieces[i].Base = unsafe.SliceData(piece)
		room.pieces[i].SetLen(len(piece))
	}
	room.header.Iov, room.header.Iovlen = &room.pieces[0], 2
	n, _, errno := syscall.RawSyscall(syscall.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&room.header)), 0)
	*room = parts{} // it is not to keep the page
	return counted(n, errno)
}

func counted(n uintptr, errno syscall.Errno) (int, error) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
