package localboard

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
)

// Boards is the set of boards of a process. Readers find a board only while it is
// open, not while it is being filled. Any goroutine may call its methods.
type Boards struct {
	// open is the readers' map. It never changes, it is replaced.
	open atomic.Pointer[map[rankcache.BoardID]*Board]

	// mu guards all, and serialises replacing open. A board's own lock may be taken
	// with it held, never the other way round.
	mu  sync.Mutex
	all map[rankcache.BoardID]*Board

	changed func(rankcache.BoardID) // nil: not wanted
}

// Option is an option of NewBoards.
type Option func(*Boards)

// WithChanged makes each board call fn when readers may see another state of it: after a
// publication, and when it was opened, closed or emptied. fn must return at
// once, and call no method of the boards.
func WithChanged(fn func(rankcache.BoardID)) Option { return func(s *Boards) { s.changed = fn } }

// NewBoards returns an empty set.
func NewBoards(options ...Option) *Boards {
	s := &Boards{all: make(map[rankcache.BoardID]*Board)}
	s.open.Store(&map[rankcache.BoardID]*Board{})
	for _, o := range options {
		o(s)
	}
	return s
}

// Create returns the board with that id; if there is none, it makes one that is not
// open.
func (s *Boards) Create(id rankcache.BoardID) *Board {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.all[id]
	if b == nil {
		b = New(id)
		if s.changed != nil {
			b.changed = func() { s.changed(id) }
		}
		s.all[id] = b
	}
	return b
}

// Open publishes the board and makes it readable. It does nothing if the board does
// not exist.
func (s *Boards) Open(id rankcache.BoardID) {
	b := s.get(id)
	if b == nil {
		return
	}
	b.Publish() // without the lock: sorting a large board takes a while
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[id] == b { // else it was dropped meanwhile
		s.setOpen(id, b)
	}
}

// Close makes the board unreadable; it can still be filled. Readers that have got it
// before finish with its last view.
func (s *Boards) Close(id rankcache.BoardID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setOpen(id, nil)
}

// Drop closes the board and removes it from the set.
func (s *Boards) Drop(id rankcache.BoardID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setOpen(id, nil)
	delete(s.all, id)
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

func (s *Boards) get(id rankcache.BoardID) *Board {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

// setOpen replaces open by a map with b as id, or without id if b is nil.
func (s *Boards) setOpen(id rankcache.BoardID, b *Board) {
	next := maps.Clone(*s.open.Load())
	if b == nil {
		delete(next, id)
	} else {
		next[id] = b
	}
	s.open.Store(&next)
	if s.changed != nil {
		s.changed(id)
	}
}

var bytesDesc = prometheus.NewDesc("rankcache_board_bytes",
	"Memory of a local board, open or being filled, estimated from its structure. Of combined boards: the sum.", []string{"board"}, nil)

// collector collects metrics of the boards that exist at that moment, so that those
// of a dropped board disappear.
type collector struct {
	boards *Boards
	label  func(rankcache.BoardID) string
}

// Collector returns the metrics of the boards. label returns the value of a board's label
// "board"; those of boards with the same one are combined.
func Collector(boards *Boards, label func(rankcache.BoardID) string) prometheus.Collector {
	return collector{boards, label}
}

func (collector) Describe(out chan<- *prometheus.Desc) { out <- bytesDesc }

func (c collector) Collect(out chan<- prometheus.Metric) {
	sums := make(map[string]int)
	for _, b := range c.boards.All() {
		sums[c.label(b.ID())] += b.Bytes()
	}
	for label, sum := range sums {
		out <- prometheus.MustNewConstMetric(bytesDesc, prometheus.GaugeValue, float64(sum), label)
	}
}
