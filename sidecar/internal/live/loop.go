package live

import (
	"sync"
	"time"

	"rankcache"
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
	steps  yield.Steps       // of its turns and of their streams; the goroutine's
	look   look              // room for what is kept here; the goroutine's
	rows   []rankcache.Entry // room for its rows; the goroutine's
	signal chan struct{}     // holds one

	mu      sync.Mutex // taken last
	quiet   []*encoder // whose page has not changed for a while; they get turns first
	waiting []*encoder
}

// quietFor is how long a page has not changed that gets the next turn: hundreds of pages that
// change all the time take some 50 ms, and nobody notices a change of these that comes later.
const quietFor = 500 * time.Millisecond

func newLoop(doYield func()) loop {
	return loop{signal: make(chan struct{}, 1), steps: yield.Every(notifiedAtOnce, doYield)}
}

// queue has the encoder get a turn. Any goroutine may call it.
func (l *loop) queue(e *encoder) {
	if e.queued.Swap(true) {
		return
	}
	quiet := time.Since(time.Unix(0, e.told.Load())) > quietFor
	l.mu.Lock()
	if quiet {
		l.quiet = append(l.quiet, e)
	} else {
		l.waiting = append(l.waiting, e)
	}
	l.mu.Unlock()
	select {
	case l.signal <- struct{}{}:
	default: // it is awake, or will be
	}
}

// run gives turns until the hub drains. It must be called once, by a goroutine of its own.
func (l *loop) run(drain <-chan struct{}) {
	for {
		select {
		case <-drain:
			return
		case <-l.signal:
		}
		for e := l.next(); e != nil && !closed(drain); e = l.next() {
			e.queued.Store(false)
			e.turn(time.Now())
			l.steps.Done(1)
		}
	}
}

// closed reports whether a channel that nothing is sent to is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// next takes an encoder from the queue, nil if there is none.
func (l *loop) next() *encoder {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := shift(&l.quiet); e != nil {
		return e
	}
	return shift(&l.waiting)
}

// shift takes the first of a queue.
func shift(queue *[]*encoder) *encoder {
	if len(*queue) == 0 {
		return nil
	}
	e := (*queue)[0]
	(*queue)[0] = nil
	*queue = (*queue)[1:]
	return e
}
