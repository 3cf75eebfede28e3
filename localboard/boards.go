package localboard

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"rankcache"
)

// Boards is the set of boards of a process. A board that is being filled is in
// it, but readers find it only once it is open. All methods may be called by any
// goroutine.
type Boards struct {
	// open is what readers look in; never changed, only replaced.
	open atomic.Pointer[map[rankcache.BoardID]*Board]

	// mu guards all, and that open is replaced by one at a time. A board's own
	// lock may be taken with it held, never the other way round.
	mu  sync.Mutex
	all map[rankcache.BoardID]*Board

	giveWay func() // of the boards that it creates
}

// Option changes what NewBoards returns.
type Option func(*Boards)

// GivingWay has publications call fn now and then, to let readers go first who have
// no other core. fn may take its time, but not call what writes to a board.
func GivingWay(fn func()) Option { return func(s *Boards) { s.giveWay = fn } }

// NewBoards returns an empty set.
func NewBoards(options ...Option) *Boards {
	s := &Boards{all: make(map[rankcache.BoardID]*Board)}
	s.open.Store(&map[rankcache.BoardID]*Board{})
	for _, o := range options {
		o(s)
	}
	return s
}

// Create returns the board id, a new one that is not open if there is none yet.
func (s *Boards) Create(id rankcache.BoardID) *Board {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.all[id]
	if b == nil {
		b = New(id)
		b.setGiveWay(s.giveWay)
		s.all[id] = b
	}
	return b
}

// Open publishes the board and makes it readable. It does nothing if there is no
// such board.
func (s *Boards) Open(id rankcache.BoardID) {
	b := s.get(id)
	if b == nil {
		return
	}
	b.Publish() // sorts a large board for a while; others need not wait for it
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[id] == b { // else it was dropped or replaced meanwhile
		s.setOpen(id, b)
	}
}

// Close makes the board unreadable; it is still filled. Readers that have it in
// hand finish with its last view.
func (s *Boards) Close(id rankcache.BoardID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setOpen(id, nil)
}

// Drop closes the board and forgets it.
func (s *Boards) Drop(id rankcache.BoardID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setOpen(id, nil)
	delete(s.all, id)
}

// Replace puts b, filled on the side, in the place of the board with its id.
// If that one is open, b is published and readers go over to it at once; its
// writer has to do likewise.
func (s *Boards) Replace(id rankcache.BoardID, b *Board) {
	if _, open := s.Get(id); open {
		b.Publish()
	}
	b.setGiveWay(s.giveWay)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[id] = b
	if _, open := s.Get(id); open {
		b.Publish() // nothing to do, unless it was opened just now
		s.setOpen(id, b)
	}
}

// Get returns the board if it is open. It takes no lock and allocates nothing.
func (s *Boards) Get(id rankcache.BoardID) (*Board, bool) {
	b, ok := (*s.open.Load())[id]
	return b, ok
}

// All returns every board, open or not, sorted by id.
func (s *Boards) All() []*Board {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Board, 0, len(s.all))
	for _, id := range slices.Sorted(maps.Keys(s.all)) {
		all = append(all, s.all[id])
	}
	return all
}

// Len returns the number of boards, open or not.
func (s *Boards) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

func (s *Boards) get(id rankcache.BoardID) *Board {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

// setOpen replaces open by a map with b under id, or without it if b is nil.
func (s *Boards) setOpen(id rankcache.BoardID, b *Board) {
	next := maps.Clone(*s.open.Load())
	if b == nil {
		delete(next, id)
	} else {
		next[id] = b
	}
	s.open.Store(&next)
}
