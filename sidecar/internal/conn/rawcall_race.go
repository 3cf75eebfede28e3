//go:build linux && (amd64 || arm64) && race

package conn

import (
	"slices"
	"syscall"
)

// The race detector knows that a write to a socket happens before the read of what was
// written, but sees both only in the system calls that the scheduler is notified of.

func rawRead(fd uintptr, p []byte) (int, error) { return syscall.Read(int(fd), p) }

func rawWrite(fd uintptr, p []byte) (int, error) { return syscall.Write(int(fd), p) }

type message struct{}

func rawWriteBoth(fd uintptr, p, behind []byte, _ *message) (int, error) {
	return syscall.Write(int(fd), slices.Concat(p, behind))
}
