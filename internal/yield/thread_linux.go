package yield

import (
	"syscall"
	"unsafe"
)

// The calls are raw: the Go runtime would take the processor from a thread that is away in one,
// for a further thread, and its monitor would look after each.

// yieldThread lets other threads run that wait for the core.
func yieldThread() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) // it never fails on Linux
}

// rawRead reads a pipe that does not block.
func rawRead(fd uintptr, p []byte) (int, error) { return rawCall(syscall.SYS_READ, fd, p) }

// rawWrite writes to one.
func rawWrite(fd uintptr, p []byte) (int, error) { return rawCall(syscall.SYS_WRITE, fd, p) }

func rawCall(trap, fd uintptr, p []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
