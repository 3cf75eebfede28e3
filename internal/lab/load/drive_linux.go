package load

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	eventsAtOnce = 128
	// checkEvery is how often, in turns of the loop, the loop checks whether ctx has
	// ended.
	checkEvery = 1024
	maxRedials = 1000 // of one run; a server that closes every connection is not measurable
)

// driver is the loop of one run. It belongs to one thread.
type driver struct {
	ctx    context.Context
	cfg    *Config
	epoll  int
	conns  []conn
	free   []int // indexes of connections that wait for a request
	events []unix.EpollEvent
	start  time.Time

	next    int // request to ask next
	every   float64
	planned int // requests of the timetable that were sent
	redials int

	counting bool
	result   Result
}

func newDriver(ctx context.Context, cfg *Config) (*driver, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	d := &driver{ctx: ctx, cfg: cfg, epoll: epoll, conns: make([]conn, cfg.Connections),
		free: make([]int, 0, cfg.Connections), events: make([]unix.EpollEvent, eventsAtOnce), start: time.Now()}
	if cfg.Rate > 0 {
		d.every = 1e9 / cfg.Rate
	}
	for i := range d.conns {
		d.conns[i].fd = -1
	}
	for i := range d.conns {
		if err := d.connect(i); err != nil {
			d.close()
			return nil, err
		}
	}
	return d, nil
}

// connect opens connection i and has it wait for a request.
func (d *driver) connect(i int) error {
	c := &d.conns[i]
	if err := c.dial(d.cfg.Target); err != nil {
		c.fd = -1
		return err
	}
	if err := unix.EpollCtl(d.epoll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	d.free, c.free = append(d.free, i), d.now()
	return nil
}

func (d *driver) close() {
	for i := range d.conns {
		if d.conns[i].fd >= 0 {
			unix.Close(d.conns[i].fd)
		}
	}
	unix.Close(d.epoll)
}

// now is the time since the start, in ns.
func (d *driver) now() int64 { return int64(time.Since(d.start)) }

// until drives for a while.
func (d *driver) until(while time.Duration) error {
	end := d.now() + int64(while)
	for turn := 0; ; turn++ {
		now := d.now()
		if now >= end {
			return nil
		}
		if turn%checkEvery == 0 && d.ctx.Err() != nil {
			return context.Cause(d.ctx)
		}
		if err := d.askDue(now); err != nil {
			return err
		}
		if err := d.take(d.patience(now, end)); err != nil {
			return err
		}
	}
}

// patience is how long, in ms, to wait for a reply: not beyond the next request
// that is due. What is left below a millisecond is spent looking again and again.
//
// Without a timetable there is no waiting. A load that sleeps has to be woken, the
// server pays for that, and the slower a server is the more often: measured, 1 µs
// of 7 µs a request, which is not the server's.
func (d *driver) patience(now, end int64) int {
	if d.cfg.Rate == 0 {
		return 0
	}
	wake := end
	if d.cfg.Rate > 0 && len(d.free) > 0 {
		wake = min(wake, d.dueAt(d.planned))
	}
	return int(max(0, wake-now) / int64(time.Millisecond))
}

// dueAt is when the i-th request of the timetable is due: in the i-th interval, each at another
// point of it. At even distances all would come at the same time before a tick of the kernel, or
// of the server, and a run would measure that.
func (d *driver) dueAt(i int) int64 {
	_, point := math.Modf(float64(i) * math.Phi)
	return int64((float64(i) + point) * d.every)
}

// askDue gives free connections the requests that are due by now.
func (d *driver) askDue(now int64) error {
	for len(d.free) > 0 {
		due := now
		if d.cfg.Rate > 0 {
			if due = d.dueAt(d.planned); due > now {
				return nil
			}
			d.planned++
		}
		i := d.free[0] // in turn: a server closes a connection that asks nothing
		d.free = slices.Delete(d.free, 0, 1)
		if d.cfg.Urgent && d.conns[i].free <= due {
			d.sentLate(now - due)
			due = now
		}
		if err := d.ask(i, due); err != nil {
			return err
		}
	}
	return nil
}

// sentLate counts a request that waited for the load, not for a connection: nothing of that is
// the server's delay. An urgent load is late when the whole machine stands still.
func (d *driver) sentLate(by int64) {
	if d.counting && by >= int64(time.Millisecond) {
		d.result.SentLate++
	}
}

func (d *driver) ask(i int, due int64) error {
	request := d.cfg.Question.Requests[d.next]
	if d.next++; d.next == len(d.cfg.Question.Requests) {
		d.next = 0
	}
	if err := d.conns[i].ask(request, d.cfg.Question.Replies, due); err != nil {
		return d.lost(i, err)
	}
	return nil
}

// take waits for replies and takes those that are there.
func (d *driver) take(patience int) error {
	n, err := d.wait(patience)
	if err != 0 && err != unix.EINTR {
		return fmt.Errorf("epoll: %w", err)
	}
	for _, event := range d.events[:n] {
		if err := d.reply(int(event.Fd)); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for events, up to patience ms, and returns how many there are.
//
// The call is raw. In another one Go's monitor looks at the thread from time to time, with a lock
// for which the thread then spins when it comes back; an urgent one does not let the monitor run
// on the same core, and both stand still until the kernel stops the urgent thread after a second.
func (d *driver) wait(patience int) (int, syscall.Errno) {
	n, _, err := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(d.epoll), uintptr(unsafe.Pointer(&d.events[0])), uintptr(len(d.events)), uintptr(patience), 0, 0)
	if err != 0 {
		return 0, err
	}
	return int(n), 0
}

func (d *driver) reply(i int) error {
	c := &d.conns[i]
	if err := c.read(); err != nil {
		return d.lost(i, err)
	}
	if !c.busy {
		return d.lost(i, fmt.Errorf("%d bytes without a request", c.n))
	}
	done, err := c.answered(d.cfg.Target.Proto, &d.cfg.Question)
	if err != nil {
		return d.lost(i, err)
	}
	if done {
		d.free, c.free = append(d.free, i), d.now()
		d.count(c)
	}
	return nil
}

func (d *driver) count(c *conn) {
	if !d.counting {
		return
	}
	d.result.Requests++
	if d.cfg.Rate > 0 {
		d.result.latencies = append(d.result.latencies, time.Duration(d.now()-c.due))
	}
}

// lost counts an error and opens the connection anew: after a reply that was not
// understood, the beginning of the next one is unknown.
func (d *driver) lost(i int, err error) error {
	d.result.fail(err)
	unix.Close(d.conns[i].fd) // also takes it out of epoll
	d.conns[i].fd = -1
	if d.redials++; d.redials > maxRedials {
		return fmt.Errorf("%d connections were lost, the first to: %w", d.redials, d.result.Error)
	}
	return d.connect(i)
}

// charge adds the requests of the timetable that were due in the window, which
// is over, and are not answered: asked but open, or not even asked. Their latency
// is at least what it is now.
func (d *driver) charge(from, to int64) {
	if d.cfg.Rate == 0 {
		return
	}
	for i := range d.conns {
		if c := &d.conns[i]; c.busy && c.due >= from && c.due < to {
			d.owe(to - c.due)
		}
	}
	for i := d.planned; d.dueAt(i) < to; i++ {
		d.owe(to - d.dueAt(i))
	}
}

func (d *driver) owe(waited int64) {
	d.result.Unanswered++
	d.result.latencies = append(d.result.latencies, time.Duration(waited))
}

// Run repeats the request for the configured time, and returns what the window showed. The error is of the run itself: no connection, no such
// process, ctx ended; what the server got wrong is counted in the result.
//
// It keeps one thread busy. Two runs at a time disturb each other.
func Run(ctx context.Context, cfg Config) (result *Result, err error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		if !cfg.Urgent { // whose thread is not for other goroutines: it ends, and its CPU time is not counted any more
			defer runtime.UnlockOSThread()
		} else {
			_ = goFirst()
		}
		result, err = drive(ctx, &cfg)
	}()
	<-ended
	return result, err
}

func drive(ctx context.Context, cfg *Config) (*Result, error) {
	d, err := newDriver(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer d.close()
	if err := d.until(cfg.Warmup); err != nil {
		return nil, err
	}
	return d.window()
}

// window drives for the window between two looks at the servers' CPU time.
func (d *driver) window() (*Result, error) {
	before, err := CPU(d.cfg.Pids)
	if err != nil {
		return nil, err
	}
	from := d.now()
	d.result, d.counting = Result{latencies: d.room()}, true
	err = d.until(d.cfg.Window)
	d.counting = false
	to := d.now()
	after, cpuErr := CPU(d.cfg.Pids)
	switch {
	case err != nil:
		return nil, err
	case cpuErr != nil:
		return nil, fmt.Errorf("after the window: %w", cpuErr)
	}
	r := &d.result
	r.Window, r.CPU = time.Duration(to-from), after-before
	d.charge(from, to)
	slices.Sort(r.latencies)
	return r, nil
}

// room is for the latencies of the window, so that none has to be made in it.
func (d *driver) room() []time.Duration {
	return make([]time.Duration, 0, int(d.cfg.Rate*d.cfg.Window.Seconds())+d.cfg.Connections+1)
}
