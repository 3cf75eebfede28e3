package roomsync

import (
	"context"
	"sync"
	"time"

	"rankcache/rooms"
)

// files are the rooms file and what is in force with the classes set at run time. They are replaced together.
type files struct {
	check    func(*rooms.File) error
	own      *rooms.File // as it was read
	document string      // of the classes set at run time; "": none
	file     *rooms.File // own with the classes of document
}

// next returns what is in force after a change, or why a class or an id can't be.
func (s *files) next(own *rooms.File, document string) (files, error) {
	next, now := files{s.check, own, document, own}, time.Now()
	err := own.CheckChange(s.file, now)
	if err == nil && document != "" {
		next.file, err = own.WithClasses([]byte(document), now)
	}
	if err == nil {
		err = next.file.CheckChange(s.file, now)
	}
	if err == nil {
		err = s.check(next.file)
	}
	return next, err
}

// sharedGate is open once what is set at run time was read and is in force.
type sharedGate struct {
	once sync.Once
	done chan struct{}
}

func (g *sharedGate) open() { g.once.Do(func() { close(g.done) }) }

// AwaitShared waits, while [Follower.Run] runs, until what is set at run time was read once, or
// until ctx is done. Writers and controllers wait for it, because they would take boards of
// classes that are set at run time for boards without a class.
func (g *sharedGate) AwaitShared(ctx context.Context) {
	select {
	case <-g.done:
	case <-ctx.Done():
	}
}

// SharedRead reports whether AwaitShared returns at once.
func (g *sharedGate) SharedRead() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}
