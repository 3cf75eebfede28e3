package localboard

import (
	"runtime"
	"time"
)

// How long a publication goes on without a break, how long a break is asked for,
// how long one may take before it says that nobody is waiting, and how many there
// are. Twice as long off as on: requests that take half of the processor catch up
// in every break. Updates wait a millisecond more in all: without a limit to the
// breaks, the p99 of the time to a published top was up to 15 ms more.
const (
	paceOn   = 100 * time.Microsecond
	paceOff  = 200 * time.Microsecond
	paceIdle = 2 * paceOff
	paceMost = 4
)

// fewProcessors is up to how many processors (GOMAXPROCS) a publication gives
// way. A container that is limited to one core has two by Go's count.
const fewProcessors = 2

// pace lets requests in between the steps of a computation, on few processors.
// There a goroutine that does not block keeps its processor for up to 10 ms, in
// which a request that comes is not even noticed; runtime.Gosched does not help,
// because with nothing else to run the scheduler goes on with the same goroutine
// before it looks at the network. A pace is for one goroutine.
type pace struct {
	since time.Time // of the work since the last break
	left  int       // breaks
}

// newPace returns the pace of a computation that begins now.
func newPace() pace {
	if runtime.GOMAXPROCS(0) > fewProcessors {
		return pace{}
	}
	return pace{since: time.Now(), left: paceMost}
}

// step is called between two steps, and sleeps if there was no break for long
// enough. The computation may hold locks, but none that a read of a board takes.
func (p *pace) step() {
	if p.left == 0 {
		return
	}
	began := time.Now()
	if began.Sub(p.since) < paceOn {
		return
	}
	time.Sleep(paceOff)
	p.rested(began)
}

// rested ends a break. A processor that has requests to answer wakes us in time,
// one that has nothing to do up to a millisecond late: no more breaks then.
func (p *pace) rested(since time.Time) {
	p.left--
	if p.since = time.Now(); p.since.Sub(since) > paceIdle {
		p.left = 0
	}
}
