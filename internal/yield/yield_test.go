package yield_test

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rankcache/internal/yield"
)

func newPoller(t testing.TB) *yield.Poller {
	t.Helper()
	p, err := yield.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// waiter reads from a pipe and counts the bytes.
type waiter struct {
	to   *os.File
	done atomic.Int32
}

func newWaiter(t testing.TB) *waiter {
	t.Helper()
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w := &waiter{to: to}
	var reading sync.WaitGroup
	reading.Go(func() {
		for buf := make([]byte, 1); ; w.done.Add(1) {
			if _, err := from.Read(buf); err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		_ = to.Close()
		reading.Wait()
		_ = from.Close()
	})
	return w
}

// TestReadyReadersRun: on one core, a goroutine whose data has arrived runs while another
// one yields: once, or some more times if the system interrupts it.
func TestReadyReadersRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p, w := newPoller(t), newWaiter(t)
	const reads = 200
	calls := 0
	for i := range int32(reads) {
		if _, err := w.to.Write([]byte{0}); err != nil {
			t.Fatal(err)
		}
		for yields := 0; w.done.Load() != i+1; yields++ {
			if yields == 100 {
				t.Fatalf("the other goroutine has read %d bytes of %d", w.done.Load(), i+1)
			}
			p.Yield()
			calls++
		}
	}
	if calls > reads*3/2 {
		t.Errorf("%d calls for %d reads, want few more than one each", calls, reads)
	}
}

// TestConcurrentYields: each call returns, whichever byte it reads, also those that
// are waiting when Close is called.
func TestConcurrentYields(t *testing.T) {
	p := newPoller(t)
	var all sync.WaitGroup
	var calls atomic.Int32
	for range 8 {
		all.Go(func() {
			for range 1000 {
				p.Yield()
				calls.Add(1)
			}
		})
	}
	for calls.Load() < 2000 {
		runtime.Gosched()
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
}

func TestYieldAfterClose(t *testing.T) {
	p := newPoller(t)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p.Yield()
}

func BenchmarkYield(b *testing.B) {
	p := newPoller(b)
	for b.Loop() {
		p.Yield()
	}
}

// BenchmarkSleep is what BenchmarkYield is to be compared with: run both with -cpu 1.
func BenchmarkSleep(b *testing.B) {
	for b.Loop() {
		time.Sleep(20 * time.Microsecond)
	}
}
