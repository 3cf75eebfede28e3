//go:build linux && (amd64 || arm64) && race

package conn

import (
	"slices"
	"syscall"
)

// The race detector sees that a socket's write comes before its read only in calls that the scheduler is told of.

func rawRead(fd uintptr, p []byte) (int, error) { return syscall.Read(int(fd), p) }

func rawWrite(fd uintptr, p []byte) (int, error) { return syscall.Write(int(fd), p) }

type message struct{}

func rawWriteBoth(fd uintptr, p, behind []byte, _ *message) (int, error) {
	return syscall.Write(int(fd), slices.Concat(p, behind))
}
