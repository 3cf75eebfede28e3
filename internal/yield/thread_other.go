//go:build !linux

package yield

import "syscall"

// yieldThread does nothing: the program runs on Linux, elsewhere it is developed.
func yieldThread() {}

// ShortSlices does nothing, either.
func ShortSlices() error { return nil }

func rawRead(fd uintptr, p []byte) (int, error) { return syscall.Read(int(fd), p) }

func rawWrite(fd uintptr, p []byte) (int, error) { return syscall.Write(int(fd), p) }
