//go:build !race

package sidecar

import (
	"syscall"
	"unsafe"
)

// rawRead and rawWrite are system calls that Go's scheduler is not told of. What
// they return is valid only without an error.

func rawRead(fd uintptr, p []byte) (int, error) { return rawCall(syscall.SYS_READ, fd, p) }

func rawWrite(fd uintptr, p []byte) (int, error) { return rawCall(syscall.SYS_WRITE, fd, p) }

func rawCall(trap, fd uintptr, p []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
