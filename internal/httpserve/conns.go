package httpserve

import (
	"maps"
	"slices"
	"sync"
)

// Stage is how far a connection is with a request. The one that is in the earliest for longest gives way.
type Stage int64

// The stages, in the order in which they give way.
const (
	ReadingHead Stage = iota // no complete head has come; so are new connections
	Idle                     // between two requests
	ReadingBody              // the head is complete, the body is not
	Answering
)

// Place is a [Stage] and since when the connection is in it, in one number. The lowest gives way first.
type Place int64

const stageShift = 60 // of nanoseconds there are 36 years below

// PlaceOf returns the place of a connection that came into s at a time, in nanoseconds since some beginning.
func PlaceOf(s Stage, since int64) Place { return Place(int64(s)<<stageShift | since) }

func (p Place) Stage() Stage { return Stage(p >> stageShift) }

// Conn is a connection that may have to give way.
type Conn interface {
	comparable
	Place() Place
	Close() error
}

// Conns are the connections that are open, no more than a number of them. All methods may be called concurrently.
type Conns[C Conn] struct {
	most  int
	mu    sync.Mutex
	open  map[C]uint64 // which one it was
	added uint64
}

// NewConns returns a set for at most so many connections.
func NewConns[C Conn](most int) *Conns[C] { return &Conns[C]{most: most, open: make(map[C]uint64)} }

// All returns those that are open, in no order.
func (s *Conns[C]) All() []C {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.open))
}

func (s *Conns[C]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Added returns how many were ever added.
func (s *Conns[C]) Added() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.added
}

// Add adds a connection; if there are as many as may be, one gives way and is closed.
func (s *Conns[C]) Add(c C) {
	if out, full := s.add(c); full {
		_ = out.Close() // its client gets no answer
	}
}

func (s *Conns[C]) add(c C) (out C, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if full = len(s.open) >= s.most; full {
		out = s.first()
		delete(s.open, out)
	}
	s.added++
	s.open[c] = s.added
	return out, full
}

// first returns the connection that gives way: of two in one place that which came first.
func (s *Conns[C]) first() (out C) {
	lowest, came := Place(-1), uint64(0)
	for c, n := range s.open {
		if p := c.Place(); lowest < 0 || p < lowest || p == lowest && n < came {
			out, lowest, came = c, p, n
		}
	}
	return out
}

// Remove forgets a connection that has ended. It is harmless for one that gave way.
func (s *Conns[C]) Remove(c C) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}
