package yield

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// slice is how long a thread runs on when another one becomes ready, instead of some
// milliseconds. With 0.3 ms an event of a live page took as little CPU, with 1 ms as much as
// with the kernel's own (docs/speed/LIVE.md).
const slice = 100 * time.Microsecond

// ShortSlices has the kernel give the process's threads short slices of time, those of now and
// those that they start. Before Linux 6.12 it has no effect. Shares of the core stay as they are.
func ShortSlices() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("list the threads: %w", err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err == nil {
			err = shortSlice(id)
		}
		if err != nil && err != unix.ESRCH { // it has ended
			return fmt.Errorf("set the slice of thread %s: %w", thread.Name(), err)
		}
	}
	return nil
}

func shortSlice(thread int) error {
	attr, err := unix.SchedGetAttr(thread, 0)
	if err != nil {
		return err
	}
	attr.Runtime = uint64(slice)
	return unix.SchedSetAttr(thread, attr, 0)
}

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
