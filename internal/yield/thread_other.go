//go:build !linux

package yield

import "syscall"

// What threads do is left as it is: the program runs on Linux, elsewhere it is developed.

func yieldThread() {}

func ShortSlices() error { return nil }

func rawRead(fd uintptr, p []byte) (int, error) { return syscall.Read(int(fd), p) }

func rawWrite(fd uintptr, p []byte) (int, error) { return syscall.Write(int(fd), p) }
