package replay

import (
	"context"
	"sync"
	"time"

	"rankcache"
	"rankcache/internal/tick"
)

// writtenEvery is how often at most boards are looked at because they were written through this process.
const writtenEvery = 50 * time.Millisecond

// writtenHere are the boards that were written through this process since the totals poller looked at them. Any goroutine may
// add one.
type writtenHere struct {
	wake   signal
	mu     sync.Mutex
	boards map[rankcache.BoardID]struct{}
}

func newWrittenHere() *writtenHere {
	return &writtenHere{wake: newSignal(), boards: make(map[rankcache.BoardID]struct{})}
}

func (w *writtenHere) add(b rankcache.BoardID) {
	w.mu.Lock()
	w.boards[b] = struct{}{}
	w.mu.Unlock()
	w.wake.wake()
}

func (w *writtenHere) take() map[rankcache.BoardID]struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.boards
	w.boards = make(map[rankcache.BoardID]struct{})
	return all
}

// Written has Redis's state of a followed board read at once, every 50 ms at most, so that the copy is known to have a
// write through this process as soon as the log has brought it. It never blocks; any goroutine may call it.
func (r *Runner) Written(b rankcache.BoardID) {
	if r.feeds.maps().byID[b] != nil {
		r.written.add(b)
	}
}

// lookAtWritten reads the states of open boards that were written. What was odd at the last look has its time to pass.
func (t *totalsPoller) lookAtWritten(ctx context.Context) {
	tick.Sleep(ctx, writtenEvery-time.Since(t.looked))
	t.looked = time.Now()
	var all []probe
	feeds := t.feeds.maps().byID
	for b := range t.written.take() {
		if f := feeds[b]; f != nil && f.replica.readable.Load() && f.lag.odd == "" {
			all = append(all, newProbe(f))
		}
	}
	t.ask(ctx, all)
}
