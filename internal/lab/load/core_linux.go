package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CoreWatch records when a core runs other programs than one, from the kernel's record of each
// switch of threads (perf_event_open with context_switch).
type CoreWatch struct {
	fd, pid int
	ring    []byte // a page of the kernel's, then records
	ended   chan struct{}
	stop    chan struct{}
	since   int64 // when the other program began that has the core; 0: none
	spans   []span
	lost    bool
}

const (
	ringPages = 1 << 10 // 4 MiB: more than a second of 30,000 switches
	ringEvery = 50 * time.Millisecond
)

// WatchCore watches a core until Stop is called. pid is the process that is expected there. The
// kernel allows it to root, or with CAP_PERFMON.
func WatchCore(core, pid int) (*CoreWatch, error) {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_DUMMY, Sample_type: unix.PERF_SAMPLE_TIME,
		Bits: unix.PerfBitContextSwitch | unix.PerfBitSampleIDAll | unix.PerfBitUseClockID, Clockid: unix.CLOCK_MONOTONIC}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, -1, core, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("watch core %d: %w (it takes root or CAP_PERFMON)", core, err)
	}
	w := &CoreWatch{fd: fd, pid: pid, ended: make(chan struct{}), stop: make(chan struct{})}
	if w.ring, err = unix.Mmap(fd, 0, (1+ringPages)*unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("watch core %d: map the records: %w", core, err)
	}
	go w.run()
	return w, nil
}

// Stop ends the watch and returns the times in which other programs had the core. The error is
// that records were lost.
func (w *CoreWatch) Stop() (Disturbance, error) {
	close(w.stop)
	<-w.ended
	w.comes(w.pid, monotonic())
	_ = unix.Munmap(w.ring)
	_ = unix.Close(w.fd)
	if w.lost {
		return nil, errors.New("the kernel has lost records of switches")
	}
	return w.spans, nil
}

func (w *CoreWatch) run() {
	defer close(w.ended)
	tick := time.NewTicker(ringEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			w.take()
			return
		case <-tick.C:
			w.take()
		}
	}
}

// take reads the records that are there.
func (w *CoreWatch) take() {
	page := (*unix.PerfEventMmapPage)(unsafe.Pointer(&w.ring[0]))
	head, tail := atomic.LoadUint64(&page.Data_head), page.Data_tail
	data := w.ring[unix.Getpagesize():]
	var record [64]byte
	for tail < head {
		header := at(data, tail, record[:8])
		size := uint64(binary.NativeEndian.Uint16(header[6:]))
		if size < 8 {
			w.lost = true
			break
		}
		w.record(at(data, tail, record[:min(size, uint64(len(record)))]))
		tail += size
	}
	atomic.StoreUint64(&page.Data_tail, head)
}

// at copies a record from the ring.
func at(ring []byte, from uint64, to []byte) []byte {
	from %= uint64(len(ring))
	n := copy(to, ring[from:])
	copy(to[n:], ring)
	return to
}

// record takes a record: type, flags and size; of a switch the process that comes, its thread, and
// the time.
func (w *CoreWatch) record(r []byte) {
	const switchOut, whole = 1 << 13, 24
	switch kind := binary.NativeEndian.Uint32(r); {
	case kind == unix.PERF_RECORD_LOST:
		w.lost = true
	case kind == unix.PERF_RECORD_SWITCH_CPU_WIDE && len(r) >= whole && binary.NativeEndian.Uint16(r[4:])&switchOut != 0:
		w.comes(int(int32(binary.NativeEndian.Uint32(r[8:]))), int64(binary.NativeEndian.Uint64(r[16:]))) // #nosec G115 -- the kernel's own types
	}
}

// comes notes which process has the core from now on; 0 is none.
func (w *CoreWatch) comes(pid int, now int64) {
	if w.since != 0 {
		w.spans = append(w.spans, span{w.since, now})
	}
	if w.since = now; pid == 0 || pid == w.pid {
		w.since = 0
	}
}

// monotonic returns the time by the clock of the records, in ns.
func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // this clock is always there
	return now.Nano()
}
