package live

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/sidecar"
)

// Defaults of [Config].
const (
	DefaultInterval = 50 * time.Millisecond
	DefaultStreams  = 10_000
	DefaultLook     = time.Second
	DefaultBeat     = 5 * time.Second
	// MaxSmall is how many keys of boards that Redis answers are watched at once: each is
	// one call a second.
	MaxSmall = 100
)

// keepFor is how long the versions of a key are kept when nobody watches it any more, so
// that a stream that was cut can go on.
const keepFor = 30 * time.Second

// Errors of [Hub.Open], beside those of a [sidecar.Reader].
var (
	// ErrStreams reports that there are as many streams, or keys of small boards, as may be.
	ErrStreams = errors.New("too many live streams")
	// ErrDraining reports that the process is about to end.
	ErrDraining = errors.New("the sidecar is draining")
)

// Config is how a [Hub] behaves; zeros take the defaults.
type Config struct {
	Interval time.Duration // shortest time between two versions of a key
	Streams  int           // most streams at once
	// Look is how often an encoder looks at what no signal tells of: other profiles, another
	// tier, and boards that Redis answers.
	Look time.Duration
	Beat time.Duration // between two [Age] events
	// Yield lets goroutines run that are ready or whose data has arrived; nil: never.
	Yield func()
}

// Key is what streams have in common that share an encoder.
type Key struct {
	Board    rankcache.BoardID
	Room     string
	Order    rankcache.Direction
	Limit    int
	Profiles bool
	Class    Class // zero: the board is named by its id
}

// Class is what pages tell of the class that names the board.
type Class struct {
	Name string
	Period
}

// Period is a period of a class, "" as its tag if the class has none.
type Period struct {
	Tag        string
	Start, End time.Time
	State      string // upcoming, running or ended
	Over       bool   // its grace has ended, too
}

// Hub has the encoders of all keys that are watched. Its methods may be called concurrently.
type Hub struct {
	cfg     Config
	reader  *sidecar.Reader
	metrics *metrics
	loop    loop

	// mu is taken before the mutex of an encoder.
	mu       sync.RWMutex
	encoders map[Key]*encoder
	byBoard  map[rankcache.BoardID][]*encoder
	streams  int
	small    int // encoders of small boards
	draining bool
	drain    chan struct{} // closed when draining is set
	start    sync.Once     // of the loop
	running  sync.WaitGroup
}

// New returns a hub without streams and registers its metrics. It starts nothing.
func New(r *sidecar.Reader, cfg Config, reg prometheus.Registerer) (*Hub, error) {
	cfg = Config{cmp.Or(cfg.Interval, DefaultInterval), cmp.Or(cfg.Streams, DefaultStreams), cmp.Or(cfg.Look, DefaultLook), cmp.Or(cfg.Beat, DefaultBeat), cfg.Yield}
	h := &Hub{cfg: cfg, reader: r, encoders: make(map[Key]*encoder),
		byBoard: make(map[rankcache.BoardID][]*encoder), drain: make(chan struct{}), loop: newLoop(cfg.Yield)}
	var err error
	h.metrics, err = newMetrics(h, reg)
	return h, err
}

// Changed wakes the encoders of a board. It returns at once; for a board that nobody watches
// it is one look-up.
func (h *Hub) Changed(board rankcache.BoardID) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, e := range h.byBoard[board] {
		e.wake()
	}
}

// Viewer is the client of a stream.
type Viewer struct {
	LastID string // of the event that it has got last, "" if none
	// Lasts is the time after which the stream has to be opened anew, because its class's board
	// is another one then; 0: never.
	Lasts time.Duration
	// Notify is called when Poll may have an event, by any goroutine, also while the stream is
	// being opened. It must not wait for anything. nil: Next is called instead of Poll.
	Notify func()
}

// Open returns a stream of the key once its page was read. The caller closes it.
func (h *Hub) Open(ctx context.Context, key Key, v Viewer) (*Stream, error) {
	for {
		e, s, err := h.join(key, v.Notify)
		if err != nil {
			return nil, err
		}
		if err = e.ready(ctx); err == nil {
			s.begin(&v)
			return s, nil
		}
		s.Close()
		if !errors.Is(err, errGone) {
			return nil, err
		}
	}
}

// join adds a stream to the encoder of the key, which is made if there is none.
func (h *Hub) join(key Key, notify func()) (*encoder, *Stream, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.draining:
		return nil, nil, ErrDraining
	case h.streams >= h.cfg.Streams:
		return nil, nil, ErrStreams
	}
	e := h.encoders[key]
	if e == nil {
		e = newEncoder(h, key)
		h.encoders[key] = e
		h.byBoard[key.Board] = append(h.byBoard[key.Board], e)
		h.start.Do(func() { h.running.Go(func() { h.loop.run(h.drain) }) })
	}
	h.streams++
	h.running.Add(1)
	return e, e.add(notify), nil
}

// leave takes a stream from its encoder.
func (h *Hub) leave(s *Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams--
	h.running.Done()
	s.encoder.remove(s)
}

// drop forgets an encoder, unless it must be unused and has streams.
func (h *Hub) drop(e *encoder, unused bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if unused && e.watchers() > 0 {
		return false
	}
	if h.encoders[e.key] == e {
		delete(h.encoders, e.key)
	}
	rest := slices.DeleteFunc(slices.Clone(h.byBoard[e.key.Board]), func(other *encoder) bool { return other == e })
	if h.byBoard[e.key.Board] = rest; len(rest) == 0 {
		delete(h.byBoard, e.key.Board)
	}
	return true
}

// takeSmall and giveSmall count the encoders of small boards.
func (h *Hub) takeSmall() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.small >= MaxSmall {
		return false
	}
	h.small++
	return true
}

func (h *Hub) giveSmall() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.small--
}

// Streams returns how many streams are open.
func (h *Hub) Streams() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.streams
}

// Drain ends all streams, and those that are opened from now on.
func (h *Hub) Drain() {
	for _, e := range h.startDrain() {
		e.timer.Stop()
		e.notifyAll()
	}
}

// startDrain returns the encoders that have streams to be told.
func (h *Hub) startDrain() []*encoder {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining {
		return nil
	}
	h.draining = true
	close(h.drain)
	return slices.Collect(maps.Values(h.encoders))
}

// Draining reports whether Drain was called.
func (h *Hub) Draining() bool {
	select {
	case <-h.drain:
		return true
	default:
		return false
	}
}

// Wait returns when the loop has ended and all streams are closed, after Drain.
func (h *Hub) Wait() { h.running.Wait() }
