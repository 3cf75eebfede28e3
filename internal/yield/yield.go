// Package yield lets a goroutine that works for long let others go first, those
// included that wait for the network and whose data has come.
//
// [runtime.Gosched] does not: it runs what is known to be ready, and while a core is
// at work Go does not ask the network poller what else is. A goroutine that wakes
// itself through the poller finds the others before it.
package yield

import (
	"fmt"
	"os"
	"syscall"
)

var wake = []byte{0}

// Poller lets its callers wait for one turn of the network poller. Any goroutine
// may call its methods; those who yield at once do it one after the other.
type Poller struct {
	from, to *os.File
	waiting  syscall.RawConn // of from
}

// New opens a pipe, which Close closes.
func New() (*Poller, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open a pipe: %w (is the limit of open files too low?)", err)
	}
	p := &Poller{from: from, to: to}
	if p.waiting, err = from.SyscallConn(); err != nil {
		_ = p.Close()
		return nil, fmt.Errorf("pipe: %w", err)
	}
	return p, nil
}

// Yield returns after goroutines that are ready, or whose data has come, had a
// turn. With nobody waiting it costs some microseconds: two system calls and a look
// at the poller. After Close it returns at once.
func (p *Poller) Yield() {
	woken := false
	_ = p.waiting.Read(func(fd uintptr) bool { // fails once p is closed
		if woken {
			return p.take(int(fd))
		}
		woken = true
		_, err := p.to.Write(wake)
		return err != nil
	})
}

// take returns false if there is nothing to take yet.
func (p *Poller) take(fd int) bool {
	var taken [1]byte
	for {
		_, err := syscall.Read(fd, taken[:])
		if err != syscall.EINTR {
			return err != syscall.EAGAIN
		}
	}
}

// Close lets everybody in Yield go.
func (p *Poller) Close() error {
	err := p.to.Close()
	if other := p.from.Close(); err == nil {
		err = other
	}
	return err
}
