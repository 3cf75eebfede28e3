package rpc

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/sidecar/live"
)

// Defaults of [Config].
const (
	DefaultInterval     = live.DefaultInterval
	DefaultStreams      = live.DefaultStreams
	DefaultMaxConns     = 4096            // beside those of streams
	DefaultWriteTimeout = 5 * time.Second // one event or answer
)

// Config is how the listener behaves; zeros take the defaults.
type Config struct {
	// Hosts are names, without port, that callers may use for a listener on loopback,
	// beside localhost and the loopback addresses.
	Hosts []string
	// Interval is the shortest time between two events of a stream that tell of changes.
	Interval time.Duration
	Streams  int // most streams at once
	// MaxConns is at how many connections one gives way to each new one, in the order of
	// [httpserve.Stage]; 0: [DefaultMaxConns] more than Streams, as each may have its own.
	MaxConns     int
	WriteTimeout time.Duration
	ReadTimeout  time.Duration // a whole request
	Heartbeat    time.Duration // between two events that tell the age of the page
	Drain        time.Duration // how long the process still answers after [Server.Drain]: clients are told to come back later
	// Classes returns the rooms file in force, never nil; nil: there are no classes.
	Classes func() *rooms.File
	// Now is the clock that periods of classes run by; nil: time.Now.
	Now func() time.Time
}

// otherRequests is how many requests beside streams one connection of HTTP/2 may have at once.
const otherRequests = 250

// Server serves live pages.
type Server struct {
	cfg    Config
	reader *sidecar.Reader
	hub    *live.Hub
	log    *slog.Logger
	conns  conns

	durations *prometheus.HistogramVec
}

// New returns a server of r and registers its metrics. It starts nothing.
func New(r *sidecar.Reader, cfg Config, log *slog.Logger, reg prometheus.Registerer) (*Server, error) {
	cfg.Streams, cfg.WriteTimeout = cmp.Or(cfg.Streams, DefaultStreams), cmp.Or(cfg.WriteTimeout, DefaultWriteTimeout)
	cfg.MaxConns = cmp.Or(cfg.MaxConns, cfg.Streams+DefaultMaxConns)
	if cfg.Classes == nil {
		none := new(rooms.File)
		cfg.Classes = func() *rooms.File { return none }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	hub, err := live.New(r, live.Config{Interval: cfg.Interval, Streams: cfg.Streams, Heartbeat: cfg.Heartbeat, Drain: cfg.Drain, Now: cfg.Now}, reg)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, reader: r, hub: hub, log: log, durations: newDurations()}
	if reg == nil {
		return s, nil
	}
	return s, errors.Join(s.conns.register(reg), reg.Register(s.durations))
}

// Conns returns how many connections are open now, and how many were ever accepted.
func (s *Server) Conns() (open int, ever uint64) {
	return int(s.conns.open.Load()), s.conns.ever.Load()
}

// Changed tells the server that readers may see another state of a board. It returns at
// once, and may be called before Serve.
func (s *Server) Changed(board rankcache.BoardID) { s.hub.Changed(board) }

// Drain ends all streams, with an event that tells so, and those that are opened from now
// on. Other requests are answered as before.
func (s *Server) Drain() { s.hub.Drain() }

// Serve answers requests on ln until ctx is done, then ends the streams, finishes the
// requests in hand and returns.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	defer s.hub.Wait()
	defer s.Drain()
	defer context.AfterFunc(ctx, s.Drain)()
	return httpserve.Serve(ctx, countedListener{ln, &s.conns}, s.Handler(), httpserve.Config{Hosts: s.cfg.Hosts, MaxConns: s.cfg.MaxConns, ReadTimeout: s.cfg.ReadTimeout, HTTP2: true, HTTP2Streams: cmp.Or(s.cfg.Streams, live.DefaultStreams) + otherRequests}, s.log)
}

// ServeLiveBoard answers GET /v1/boards/{board}/live, for another listener of the process.
// Its stream counts among Config.Streams and ends with Drain.
func (s *Server) ServeLiveBoard(w http.ResponseWriter, r *http.Request) {
	eventStreams{streams{s}}.liveBoard(w, r)
}

// Handler returns what Serve answers with.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	live := eventStreams{streams{s}}
	mux.HandleFunc("GET /v1/boards/{board}/live", live.liveBoard)
	mux.HandleFunc("GET /v1/classes/{class}/live", live.liveClass)
	services{s}.handle(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { writeProblem(w, unknownPath()) })
	return httpserve.CheckOrigin(mux)
}
