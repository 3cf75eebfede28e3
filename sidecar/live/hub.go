package live

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/class"
	"rankcache/rooms"
	"rankcache/sidecar"
)

// Defaults of [Config].
const (
	DefaultInterval  = 50 * time.Millisecond
	DefaultStreams   = 10_000
	DefaultPoll      = time.Second
	DefaultHeartbeat = 5 * time.Second
	// MaxSmall is how many keys of boards that Redis answers have subscribers at once, one call each [Config.Poll].
	MaxSmall = 100
)

// Errors of [Hub.Subscribe], beside those of a [sidecar.Reader].
var (
	// ErrStreams reports that there are as many subscribers, or keys of small boards, as may be.
	ErrStreams  = errors.New("too many live streams")
	ErrDraining = errors.New("the sidecar is draining") // reports that the process is about to end
)

// Config is how a [Hub] behaves; zeros take the defaults.
type Config struct {
	Interval time.Duration // shortest time between two versions of a key
	Streams  int           // most subscribers at once
	// Poll is how often a publisher reads what no signal tells of: profiles, another tier, Redis's boards.
	Poll      time.Duration
	Heartbeat time.Duration    // between two [Age] events
	Drain     time.Duration    // how long the process still answers after [Hub.Drain]
	Now       func() time.Time // by which boards of a period before are asked again; nil: time.Now
}

// Key is what subscribers have in common that share a publisher.
type Key struct {
	Board    rankcache.BoardID
	Room     string
	Order    rankcache.Direction
	Limit    int
	Profiles bool
	Class    Class // zero: the board is named by its id
	Before   Before
}

// Before is the board of the period before, of whose final ranks the rows tell. Zero: no trend.
type Before struct {
	Board rankcache.BoardID
	Tag   string // of its period
}

// Class is what pages tell of the class that names the board.
type Class struct {
	Name   string
	Period class.Period // zero: the class has no periods
	State  rooms.PeriodState
}

// Hub has the publishers of all keys that have subscribers. Its methods may be called concurrently.
type Hub struct {
	cfg     Config
	reader  *sidecar.Reader
	metrics *metrics
	life    context.Context // until Drain

	waking sync.Mutex // held while those wait who wake subscribers
	woken  int        // since the last pause

	mu         sync.RWMutex // nothing is called under it
	publishers map[Key]*publisher
	byBoard    map[rankcache.BoardID]map[*publisher]bool
	streams    int
	small      int // publishers of small boards
	endLife    context.CancelFunc
	drainedAt  time.Time // when the process ends, after Drain
	running    sync.WaitGroup
}

// New returns a hub without subscribers and registers its metrics. It starts nothing.
func New(r *sidecar.Reader, cfg Config, reg prometheus.Registerer) (*Hub, error) {
	cfg.Interval, cfg.Streams = cmp.Or(cfg.Interval, DefaultInterval), cmp.Or(cfg.Streams, DefaultStreams)
	cfg.Poll, cfg.Heartbeat = cmp.Or(cfg.Poll, DefaultPoll), cmp.Or(cfg.Heartbeat, DefaultHeartbeat)
	h := &Hub{cfg: cfg, reader: r, publishers: make(map[Key]*publisher), byBoard: make(map[rankcache.BoardID]map[*publisher]bool)}
	if h.cfg.Now == nil {
		h.cfg.Now = time.Now
	}
	h.life, h.endLife = context.WithCancel(context.Background())
	var err error
	h.metrics, err = newMetrics(h, reg)
	return h, err
}

// Changed signals the publishers of a board. It returns at once; for a board without subscribers it is one look-up.
func (h *Hub) Changed(board rankcache.BoardID) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for p := range h.byBoard[board] {
		p.signal()
	}
}

// Options are those of a subscription.
type Options struct {
	LastID string // of the event that the client has got last, "" if none
	// Lifetime is after how long the client has to subscribe anew, as the class has another board; 0: never.
	Lifetime time.Duration
}

// Subscribe returns a subscriber of the key once its page was read. The caller closes it.
func (h *Hub) Subscribe(ctx context.Context, key Key, o Options) (*Subscriber, error) {
	for {
		p, err := h.join(key)
		if err != nil {
			return nil, err
		}
		if err = p.ready(ctx); err == nil {
			return newSubscriber(p, &o), nil
		}
		h.leave(p)
		if !errors.Is(err, errEnded) {
			return nil, err
		}
	}
}

// join adds a subscriber to the publisher of the key, which is started if there is none.
func (h *Hub) join(key Key) (*publisher, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.Draining():
		return nil, ErrDraining
	case h.streams >= h.cfg.Streams:
		return nil, ErrStreams
	}
	p := h.publishers[key]
	if p == nil {
		p = newPublisher(h, key)
		h.publishers[key] = p
		h.addLocked(p)
		h.running.Go(func() { p.run(h.life) })
	}
	h.streams++
	p.subscribers++
	h.running.Add(1)
	return p, nil
}

func (h *Hub) leave(p *publisher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams--
	p.subscribers--
	h.running.Done()
}

func (h *Hub) subscribersOf(p *publisher) int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return p.subscribers
}

const (
	// wokenAtOnce is how many subscribers are woken between two pauses of wakePause: requests for pages come in between.
	wokenAtOnce = 50
	wakePause   = time.Millisecond
)

func (h *Hub) wake(signal chan struct{}, n int) {
	h.waking.Lock()
	defer h.waking.Unlock()
	if h.woken += n; h.woken > wokenAtOnce {
		time.Sleep(wakePause)
		h.woken = n
	}
	close(signal)
}

// removeUnused removes a publisher, unless it has subscribers, and returns whether it did.
func (h *Hub) removeUnused(p *publisher) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.subscribers > 0 {
		return false
	}
	h.removeLocked(p)
	return true
}

// remove removes a publisher: who subscribes from now on gets another one.
func (h *Hub) remove(p *publisher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removeLocked(p)
}

// follow has the publisher follow the boards of its page: its class may have been set or removed since.
func (h *Hub) follow(p *publisher) {
	boards := h.reader.Tiers().Parts(p.key.Board)
	if slices.Equal(boards, p.boards) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgetLocked(p)
	p.boards = boards
	h.addLocked(p)
}

func (h *Hub) removeLocked(p *publisher) {
	delete(h.publishers, p.key)
	h.forgetLocked(p)
}

func (h *Hub) addLocked(p *publisher) {
	for _, b := range p.boards {
		if h.byBoard[b] == nil {
			h.byBoard[b] = make(map[*publisher]bool)
		}
		h.byBoard[b][p] = true
	}
}

func (h *Hub) forgetLocked(p *publisher) {
	for _, b := range p.boards {
		if delete(h.byBoard[b], p); len(h.byBoard[b]) == 0 {
			delete(h.byBoard, b)
		}
	}
}

// addSmall counts a publisher of a small board, unless there are as many as may be.
func (h *Hub) addSmall() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.small >= MaxSmall {
		return false
	}
	h.small++
	return true
}

func (h *Hub) removeSmall() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.small--
}

// Streams returns how many subscribers there are.
func (h *Hub) Streams() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.streams
}

// Drain ends all subscriptions, and those that begin from now on. Only the first call counts.
func (h *Hub) Drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.Draining() {
		h.drainedAt = time.Now().Add(h.cfg.Drain)
		h.endLife()
	}
}

// Draining reports whether Drain was called.
func (h *Hub) Draining() bool { return h.life.Err() != nil }

// Wait returns when all publishers have ended and all subscribers are closed, after Drain.
func (h *Hub) Wait() { h.running.Wait() }

// End returns a client's last event, with a pause before it comes back, not the same for all, longer in a drain.
func (h *Hub) End(code Code) Event {
	ev := Event{Kind: End, Code: code, Retry: 100*time.Millisecond + rand.N(900*time.Millisecond)}
	if code == CodeDraining {
		h.mu.RLock()
		defer h.mu.RUnlock()
		ev.Retry += max(0, time.Until(h.drainedAt))
	}
	return ev
}
