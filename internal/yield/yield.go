// Package yield lets a goroutine with much work yield to others, including those that
// wait for the network and whose data has arrived.
//
// [runtime.Gosched] runs goroutines that are known to be ready, and while a core is
// busy Go does not ask the network poller for more. [time.Sleep] does, but on an idle
// core it takes at least a millisecond, the resolution of the poller's timeout. A
// goroutine that wakes itself through the network poller makes Go ask it, too, and on
// an idle core it is back within some microseconds. Where Go has more threads than cores,
// as in a pod with a limit of one, what has arrived may be another thread's, which the
// kernel would let wait for milliseconds: so the thread gives way, too. Entry: [New], then
// [Poller.Yield].
package yield

import (
	"fmt"
	"os"
	"syscall"
)

var wake = []byte{0}

// Poller is a pipe through which goroutines wake themselves. Any goroutine may call
// its methods; concurrent calls of Yield are serialised.
type Poller struct {
	from, to      *os.File
	reads, writes syscall.RawConn // of from and to
}

// New opens a pipe, which Close closes.
func New() (*Poller, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open a pipe: %w (is the limit of open files too low?)", err)
	}
	p := &Poller{from: from, to: to}
	if p.reads, err = from.SyscallConn(); err == nil {
		p.writes, err = to.SyscallConn()
	}
	if err != nil {
		_ = p.Close()
		return nil, fmt.Errorf("pipe: %w", err)
	}
	return p, nil
}

// Yield lets goroutines run that are ready or whose data has arrived, and returns after
// them, unless the system interrupts it. If there are none it costs some microseconds: five
// system calls and two polls of the network. After Close it returns at once.
//
// The first poll finds the caller's own byte last, and what Go finds last it runs first. So
// there is a second one, to which the others come first: without it they would wait on this
// processor for the caller's next piece of work, and for those of other threads in between.
func (p *Poller) Yield() {
	yieldThread()
	p.poll()
	p.poll()
}

// poll makes the caller wait for a byte of its own, so that Go polls the network.
func (p *Poller) poll() {
	woken := false
	_ = p.reads.Read(func(fd uintptr) bool { // fails once p is closed
		if woken {
			return tryRead(fd)
		}
		woken = true
		return p.writes.Write(writeOne) != nil
	})
}

// writeOne writes one byte, for which a pipe always has room here.
func writeOne(fd uintptr) bool {
	for {
		if _, err := rawWrite(fd, wake); err != syscall.EINTR {
			return true
		}
	}
}

// tryRead reads one byte. It returns false if there is none yet.
func tryRead(fd uintptr) bool {
	var buf [1]byte
	for {
		if _, err := rawRead(fd, buf[:]); err != syscall.EINTR {
			return err != syscall.EAGAIN
		}
	}
}

// Close ends all calls of Yield.
func (p *Poller) Close() error {
	err := p.to.Close()
	if other := p.from.Close(); err == nil {
		err = other
	}
	return err
}
