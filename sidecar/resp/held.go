package resp

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// held counts the memory of large commands of all connections: used, and used but not collected yet.
type held struct {
	used, garbage atomic.Int64 // bytes
	collecting    sync.Mutex
	given         rate.Sometimes
}

func newHeld() held { return held{given: rate.Sometimes{Interval: 10 * time.Second}} }

// take counts n bytes more, and reports whether they may be allocated.
func (h *held) take(n int64) bool {
	used := h.used.Add(n)
	if used <= maxHeld && used+h.garbage.Load() > maxHeld {
		h.collect(runtime.GC)
	}
	if used+h.garbage.Load() > maxHeld {
		h.used.Add(-n)
		return false
	}
	return true
}

// drop counts n bytes as no longer used.
func (h *held) drop(n int64) {
	h.garbage.Add(n)
	h.used.Add(-n)
}

func (h *held) collect(by func()) {
	h.collecting.Lock()
	defer h.collecting.Unlock()
	if n := h.garbage.Load(); n > 0 { // else another did it meanwhile
		by()
		h.garbage.Add(-n)
	}
}

const minGiven = 16 << 20 // worth a collection, in bytes

// giveBack gives the memory of large commands back to the system once there are none. It does not wait.
func (h *held) giveBack(time.Time) {
	if h.used.Load() == 0 && h.garbage.Load() >= minGiven {
		h.given.Do(func() { go h.collect(debug.FreeOSMemory) })
	}
}

// share is what one connection holds of it.
type share struct {
	of   *held
	size int64
}

// set makes it n bytes, of which none are those of before, and reports whether they may be allocated.
func (s *share) set(n int64) bool {
	switch {
	case n < s.size:
		s.of.drop(s.size - n)
	case n == s.size: // most often: few commands are large
		return true
	case !s.of.take(n):
		return false
	default:
		s.of.drop(s.size)
	}
	s.size = n
	return true
}
