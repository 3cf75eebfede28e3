package resp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/sidecar"
	"rankcache/sidecar/internal/conn"
	"rankcache/sidecar/internal/latency"
	"rankcache/wire"
)

// Defaults of [Config].
const (
	DefaultMaxConns        = 10_000
	DefaultReadTimeout     = 30 * time.Second // a whole command, from its first byte
	DefaultWriteTimeout    = 10 * time.Second // each part of the replies
	DefaultDrainTimeout    = 5 * time.Second
	DefaultUpstreamTimeout = 200 * time.Millisecond

	// idle connections stay open, as those of Redis do: clients keep them in pools.
	idleTimeout = 365 * 24 * time.Hour
)

// Config is how the listener behaves; zeros take the defaults.
type Config struct {
	// Dial connects to Redis: TLS is done, nothing is sent. It may be called concurrently.
	Dial      func(context.Context) (net.Conn, error)
	OneMaster bool // Dial connects to one server: after a failover connections to the old one are closed
	// Credentials returns the sidecar's user and password, "": none: other logins are not answered from copies.
	Credentials     func() (user, password string)
	DB              int // the database that has the boards
	Names           wire.Names
	Logged          func(rankcache.BoardID) bool // whether a board's changes are logged in Redis, which writes of clients then do as well; nil: no board's
	LogEntries      int64                        // about how many the log in Redis keeps; 0: 600,000
	MaxAge          time.Duration                // how long ago a copy must have been known to be current; 0: any may be read
	MaxConns        int                          // for all listeners; at so many, one gives way to each new one
	ReadTimeout     time.Duration
	WriteTimeout    time.Duration
	DrainTimeout    time.Duration
	UpstreamTimeout time.Duration // connecting, logging in, one question of the sidecar's own
}

func (c Config) withDefaults() Config {
	c.MaxConns = cmp.Or(c.MaxConns, DefaultMaxConns)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, DefaultReadTimeout)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, DefaultWriteTimeout)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, DefaultDrainTimeout)
	c.UpstreamTimeout = cmp.Or(c.UpstreamTimeout, DefaultUpstreamTimeout)
	c.LogEntries = cmp.Or(c.LogEntries, 600_000) // about 64 MiB
	if c.Credentials == nil {
		c.Credentials = func() (string, string) { return "", "" }
	}
	return c
}

// Server answers clients of Redis. It may serve several listeners at once.
type Server struct {
	cfg    Config
	reader *sidecar.Reader
	log    *slog.Logger
	began  time.Time
	clock  *conn.Clock
	conns  *httpserve.Conns[*session]
	lastID atomic.Uint64

	learner
	guard     writeGuard
	logged    loggedWrites
	named     *named // nil: no board's changes are logged in Redis
	upstreams *upstreams
	lived     context.Context
	live      context.CancelFunc

	buffers   sync.Pool // of *[]byte: replies, while a connection answers
	counts    *counts
	unfit     *unfit
	durations *durations
	broken    prometheus.Counter
	held      held
}

// firstID is the id of the first connection. Redis has not come so far, so that an id from here names no client of it.
const firstID = 1 << 52

// New returns a server of r and registers its metrics. It starts nothing.
func New(r *sidecar.Reader, cfg Config, log *slog.Logger, reg prometheus.Registerer) (*Server, error) {
	cfg = cfg.withDefaults()
	if cfg.Dial == nil {
		return nil, errors.New("a RESP server needs an upstream")
	}
	s := &Server{cfg: cfg, reader: r, log: log, began: time.Now(),
		conns: httpserve.NewConns[*session](cfg.MaxConns), counts: newCounts(), unfit: newUnfit(cfg.Names, log), durations: newDurations(), held: newHeld(),
		broken: prometheus.NewCounter(prometheus.CounterOpts{Name: "rankcache_resp_protocol_errors_total",
			Help: "Connections to the RESP listener that ended with a malformed frame."})}
	s.lastID.Store(firstID)
	s.upstreams = &upstreams{cfg: &s.cfg, began: s.began, open: make(map[net.Conn]struct{})}
	s.learner.upstreams, s.learner.log, s.asks, s.tried = s.upstreams, log, make(chan ask), make(chan struct{})
	s.facts.Store(unlearned)
	s.logged = loggedWrites{cfg.Logged, strconv.FormatInt(cfg.LogEntries, 10), cfg.Names, &s.learner}
	if cfg.Logged != nil {
		s.named = &named{began: s.began}
	}
	s.guard = writeGuard{r, cfg.Names, &s.learner, &s.logged}
	s.lived, s.live = context.WithCancel(context.Background())
	s.clock = conn.NewClock(conn.Limits{Read: cfg.ReadTimeout, Write: cfg.WriteTimeout, Idle: idleTimeout}, s.held.giveBack)
	return s, s.register(reg)
}

func (s *Server) takeBuffer() []byte {
	if b, ok := s.buffers.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 0, firstRoom)
}

func (s *Server) giveBuffer(b []byte) {
	if cap(b) <= 2*flushAt {
		b = b[:0]
		s.buffers.Put(&b)
	}
}

func (s *Server) register(reg prometheus.Registerer) error {
	if reg == nil {
		return nil
	}
	gauge := func(name, help string, value func() int) error {
		return reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) }))
	}
	return errors.Join(reg.Register(s.counts), reg.Register(s.durations), reg.Register(s.broken), reg.Register(s.unfit.reads),
		gauge("rankcache_resp_connections", "Connections now open to the RESP listeners.", s.conns.Len),
		gauge("rankcache_resp_upstream_connections", "Connections to Redis that those have open.", s.upstreams.len))
}

// Status is what operators see.
type Status struct {
	Connections int    `json:"connections"`
	Upstreams   int    `json:"upstream_connections"`
	Server      string `json:"server"` // "" before it was asked
	Reached     bool   `json:"reached"`
}

// Status returns the present state.
func (s *Server) Status() Status {
	f := s.facts.Load()
	return Status{s.conns.Len(), s.upstreams.len(), f.name, f != unlearned && !s.away.Load()}
}

// Conns returns how many connections are open now, and how many were ever accepted.
func (s *Server) Conns() (open int, ever uint64) { return s.conns.Len(), s.conns.Added() }

// Run learns from Redis until ctx is done.
func (s *Server) Run(ctx context.Context) error { return s.follow(ctx) }

// Serve answers on ln until ctx is done, closes it, finishes current commands and returns; an error if ln failed.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	stop := make(chan struct{})
	defer close(stop)
	go s.clock.Run(stop)
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	var sessions sync.WaitGroup
	for {
		accepted, err := ln.Accept()
		if ctx.Err() != nil {
			if err == nil {
				accepted.Close()
			}
			s.drain(&sessions)
			return nil
		}
		if err != nil {
			return fmt.Errorf("RESP listener %s: %w", ln.Addr(), err)
		}
		c := s.newSession(accepted)
		sessions.Go(func() { s.serve(c) })
	}
}

func (s *Server) newSession(accepted net.Conn) *session {
	c := &session{server: s, id: s.lastID.Add(1), buffer: buffer{held: share{of: &s.held}, args: share{of: &s.held}}, greeting: greeting{proto: 2}}
	_, password := s.cfg.Credentials()
	c.loggedIn, c.writes.began, c.timing.sampler = password == "", s.began, latency.NewSampler(c.id)
	c.Open(accepted, s.clock, c)
	s.conns.Add(c)
	return c
}

func (s *Server) serve(c *session) {
	defer func() {
		if fault := recover(); fault != nil {
			s.log.Error("RESP session panicked", "fault", fault, "stack", string(debug.Stack()))
		}
	}()
	if err := c.serve(); err != nil {
		s.log.Debug("RESP connection ended", "err", err)
	}
}

// drain closes connections between two commands, and all that are left after DrainTimeout.
func (s *Server) drain(sessions *sync.WaitGroup) {
	for _, c := range s.conns.All() {
		_ = c.Close() // it finishes first what it is at
	}
	over := time.AfterFunc(s.cfg.DrainTimeout, func() {
		s.live()
		for _, c := range s.conns.All() {
			_ = c.Conn.Conn.Close()
		}
		s.upstreams.closeBut("")
	})
	defer over.Stop()
	sessions.Wait()
}
