package live

import (
	"sync"
	"time"

	"rankcache/internal/yield"
)

// notifiedAtOnce is after how many streams, or encoders, the loop yields. An event takes some 4 us,
// and a yield with what it has other threads do about as long: page reads wait longer with 10
// (docs/speed/LIVE.md).
const notifiedAtOnce = 4

// loop is the goroutine of a hub that gives turns to the encoders that are queued: one after the
// other they read their pages, make versions and notify streams, which write the events. That can
// take most of a core, and page reads must not wait for it: the loop yields after every few.
type loop struct {
	steps  yield.Steps   // of its turns and of their streams; the goroutine's
	look   look          // room for what is kept here; the goroutine's
	signal chan struct{} // holds one

	mu      sync.Mutex // taken last
	waiting []*encoder
}

func newLoop(doYield func()) loop {
	return loop{signal: make(chan struct{}, 1), steps: yield.Every(notifiedAtOnce, doYield)}
}

// queue has the encoder get a turn. Any goroutine may call it.
func (l *loop) queue(e *encoder) {
	if e.queued.Swap(true) {
		return
	}
	l.mu.Lock()
	l.waiting = append(l.waiting, e)
	l.mu.Unlock()
	select {
	case l.signal <- struct{}{}:
	default: // it is awake, or will be
	}
}

// run gives turns until the hub drains. It must be called once, by a goroutine of its own.
func (l *loop) run(drain <-chan struct{}) {
	var queued []*encoder
	for {
		select {
		case <-drain:
			return
		case <-l.signal:
		}
		queued = l.take(queued)
		for _, e := range queued {
			e.queued.Store(false)
			e.turn(time.Now())
			l.steps.Done(1)
		}
		clear(queued)
	}
}

// take returns what is queued, and leaves room for more in its place.
func (l *loop) take(room []*encoder) []*encoder {
	l.mu.Lock()
	defer l.mu.Unlock()
	queued := l.waiting
	l.waiting = room[:0]
	return queued
}
