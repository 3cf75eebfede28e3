package hotkey

import (
	"sync/atomic"
	"time"

	"rankcache"
)

// page is the local top page of one promoted board. Any number of readers use
// read; only the refresher writes.
type page struct {
	board rankcache.BoardID
	held  atomic.Pointer[heldTop] // nil: nothing read yet, or dropped when idle
	asked atomic.Int64            // Unix ns of the last read, to about askedGrain
	hits  atomic.Uint64           // reads answered from here

	// Guarded by the refresher's lock.
	flying bool      // being read from Redis
	due    time.Time // when to read it next
	fails  int       // failed reads in a row
}

// heldTop is a page and when Redis was last known to say so.
type heldTop struct {
	top *rankcache.Top
	at  time.Time
}

// askedGrain spares readers of one page from writing the same cache line.
const askedGrain = int64(100 * time.Millisecond)

// read returns what is held, nil when it is older than stale, and notes that
// the page is being asked for.
func (p *page) read(now time.Time, stale time.Duration) *heldTop {
	if ns := now.UnixNano(); ns-p.asked.Load() > askedGrain {
		p.asked.Store(ns)
	}
	h := p.held.Load()
	if h == nil || now.Sub(h.at) > stale {
		return nil
	}
	p.hits.Add(1)
	return h
}

// idle reports whether the page was not asked for lately.
func (p *page) idle(now time.Time, after time.Duration) bool {
	return now.UnixNano()-p.asked.Load() > int64(after)
}

// publish holds top as the state of at, which is when its reading began. An
// unchanged page keeps its pointer, and with it the encoded pages of its
// readers.
func (p *page) publish(top *rankcache.Top, at time.Time) {
	if old := p.held.Load(); old != nil && sameTop(old.top, top) {
		top = old.top
	}
	p.held.Store(&heldTop{top, at})
}

// sameTop reports whether two pages of a board say the same.
func sameTop(a, b *rankcache.Top) bool {
	if a.Seq != b.Seq || a.Members != b.Members || len(a.Entries) != len(b.Entries) {
		return false
	}
	for i := range a.Entries {
		if a.Entries[i] != b.Entries[i] {
			return false
		}
	}
	return true
}
