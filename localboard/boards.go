package localboard

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
)

// Boards is the boards of a process, each found only while it is open. Any goroutine may call its methods.
type Boards struct {
	open sync.Map // the readers': *Board by id

	mu  sync.Mutex // guards all, and is held while open is changed. A board's lock may be taken under it, never above.
	all map[rankcache.BoardID]*Board

	changed func(rankcache.BoardID) // nil: not wanted
}

// Option is an option of NewBoards.
type Option func(*Boards)

// WithChanged makes each board call fn when readers may see another state. fn returns at once and calls no board.
func WithChanged(fn func(rankcache.BoardID)) Option { return func(s *Boards) { s.changed = fn } }

// NewBoards returns an empty set.
func NewBoards(options ...Option) *Boards {
	s := &Boards{all: make(map[rankcache.BoardID]*Board)}
	for _, o := range options {
		o(s)
	}
	return s
}

// Create returns the board with that id; if there is none, it makes one that is not open.
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

// Open publishes the board and makes it readable. It does nothing if the board does not exist.
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

// Close makes the board unreadable; it can still be filled. Readers that have got it before finish with its last view.
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
	b, ok := s.open.Load(id)
	if !ok {
		return nil, false
	}
	return b.(*Board), true
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

// setOpen has readers find b as id, or nothing if b is nil.
func (s *Boards) setOpen(id rankcache.BoardID, b *Board) {
	if b == nil {
		s.open.Delete(id)
	} else {
		s.open.Store(id, b)
	}
	if s.changed != nil {
		s.changed(id)
	}
}

var bytesDesc = prometheus.NewDesc("rankcache_board_bytes",
	"Memory of a local board, open or being filled, estimated from its structure. Of combined boards: the sum.", []string{"board"}, nil)

// collector collects metrics of the boards that exist at that moment, so that those of a dropped board disappear.
type collector struct {
	boards *Boards
	label  func(rankcache.BoardID) string
}

// Collector returns the boards' metrics. Boards to which label gives the same value are combined.
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
