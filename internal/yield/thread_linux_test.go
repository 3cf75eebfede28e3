package yield_test

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"rankcache/internal/yield"
)

// TestShortSlices: threads of now and later ones get short slices, where the kernel has them.
func TestShortSlices(t *testing.T) {
	if err := yield.ShortSlices(); err != nil {
		t.Fatal(err)
	}
	slices := make(chan uint64)
	read := func() {
		runtime.LockOSThread() // it is not unlocked: the thread ends with the goroutine
		attr, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Error(err)
			attr = &unix.SchedAttr{}
		}
		slices <- attr.Runtime
	}
	for range 20 { // more threads than there are yet
		go read()
	}
	for range 20 {
		if got := <-slices; got != 100_000 && got != 0 { // 0: a kernel before 6.12
			t.Errorf("a slice of %d ns", got)
		}
	}
}
