package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"rankcache/internal/httpserve"
)

// Limits of the data listener, and the defaults of [DataConfig].
const (
	maxHeader = httpserve.MaxHeader
	maxBody   = 256 << 10 // bytes; 500 members of 128 bytes, most of them escaped

	// WriteBuffer is how long an answer, header included, may be to be sent by one
	// system call, in bytes: 50 rows with profiles take some 8 kB. Sent by two they
	// took 1.6 times the CPU over TCP (docs/BENCHMARKS.md).
	WriteBuffer = 16 << 10

	DefaultMaxConns     = 4096             // about 32 KiB each when idle
	DefaultReadTimeout  = 5 * time.Second  // a whole request, from its first byte
	DefaultWriteTimeout = 5 * time.Second  // one answer, or each part of a long one
	DefaultIdleTimeout  = 90 * time.Second // between requests
	DefaultDrainTimeout = 5 * time.Second  // requests in hand when serving ends
)

// DataConfig is how the data listener behaves; zeros take the defaults.
type DataConfig struct {
	// Hosts are names, without port, that callers may use for a listener on
	// loopback, beside localhost and the loopback addresses.
	Hosts []string
	// MaxConns is for all listeners. At so many, one gives way to each new one: first
	// the one that has waited for a complete request for longest, then the one that has
	// been idle for longest, then the one whose request has.
	MaxConns     int
	ReadTimeout  time.Duration
	WriteTimeout time.Duration
	IdleTimeout  time.Duration
	DrainTimeout time.Duration
}

// DataServer answers the app. It may serve several listeners at once.
type DataServer struct {
	reader   *Reader
	cfg      DataConfig
	log      *slog.Logger
	counters *counters
	packer   *packer
	room     sync.Pool // of *[]byte, to encode pages in before it is known how long they are
	limits   timeLimits
	draining atomic.Bool
	conns    *httpserve.Conns[*dataConn]
	lastConn atomic.Uint64
	// complained is the second in which a failed read was last logged.
	complained atomic.Int64
}

// NewDataServer returns a server of r and registers its metrics. It starts
// nothing.
func NewDataServer(r *Reader, cfg DataConfig, log *slog.Logger, reg prometheus.Registerer) (*DataServer, error) {
	cfg.MaxConns = cmp.Or(cfg.MaxConns, DefaultMaxConns)
	cfg.ReadTimeout = cmp.Or(cfg.ReadTimeout, DefaultReadTimeout)
	cfg.WriteTimeout = cmp.Or(cfg.WriteTimeout, DefaultWriteTimeout)
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, DefaultIdleTimeout)
	cfg.DrainTimeout = cmp.Or(cfg.DrainTimeout, DefaultDrainTimeout)
	packer, err := newPacker()
	if err != nil {
		return nil, err
	}
	s := &DataServer{reader: r, cfg: cfg, log: log, counters: newCounters(), packer: packer,
		conns: httpserve.NewConns[*dataConn](cfg.MaxConns)}
	s.room.New = func() any { return new([]byte) }
	s.limits.began = time.Now()
	s.limits.move(s.limits.began)
	s.limits.read, s.limits.write, s.limits.idle = cfg.ReadTimeout, cfg.WriteTimeout, cfg.IdleTimeout
	conns := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rankcache_data_connections",
		Help: "Connections now open to the data listeners.",
	}, func() float64 { return float64(s.conns.Len()) })
	return s, register(reg, s.counters, conns)
}

// Conns returns how many connections are open now, and how many were ever accepted.
func (s *DataServer) Conns() (open int, ever uint64) { return s.conns.Len(), s.lastConn.Load() }

// Drain makes every answer from now on end its connection, so that few are left
// when serving ends. Requests are answered as before, but do not wait for local
// copies any more.
func (s *DataServer) Drain() {
	s.draining.Store(true)
	s.reader.EndWaits()
}

// Serve answers requests on ln until ctx is done, then closes ln, finishes the
// requests in hand and returns. The error says why ln failed, or that requests
// were still unfinished after DrainTimeout.
func (s *DataServer) Serve(ctx context.Context, ln net.Listener) error {
	srv := s.server(ln)
	stopClock := make(chan struct{})
	defer close(stopClock)
	go s.limits.tick(stopClock)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(cappedListener{ln, s, new(repeats)}) }()
	select {
	case err := <-failed:
		return fmt.Errorf("data listener %s: %w", ln.Addr(), cmp.Or(err, net.ErrClosed))
	case <-ctx.Done():
	}
	s.Drain()
	_ = ln.Close() // should Serve not have got to it yet, Shutdown would not know of it
	<-failed
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.DrainTimeout)
	defer cancel()
	if err := srv.ShutdownWithContext(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("data listener %s: requests unfinished after %v: %w", ln.Addr(), s.cfg.DrainTimeout, err)
	}
	return nil
}

// server returns the HTTP server of one listener.
func (s *DataServer) server(ln net.Listener) *fasthttp.Server {
	handler := s.handle
	if httpserve.OnLoopback(ln.Addr()) {
		handler = s.checkHost
	}
	return &fasthttp.Server{
		HeaderReceived: markConflict, Handler: s.checkFrame(handler), ErrorHandler: s.unreadable, ConnState: s.connState,
		// What it logs are broken requests and connections, which are counted.
		Logger:      slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		Concurrency: 2 * s.cfg.MaxConns, ReadBufferSize: maxHeader, WriteBufferSize: WriteBuffer,
		MaxRequestBodySize: maxBody, // time-outs are those of dataConn
		CloseOnShutdown:    true, NoDefaultServerHeader: true, NoDefaultContentType: true,
		DisablePreParseMultipartForm: true, SecureErrorLogMessage: true,
	}
}

// connState follows each connection.
func (s *DataServer) connState(conn net.Conn, state fasthttp.ConnState) {
	c, ok := conn.(*dataConn)
	if !ok {
		return
	}
	if c.state(state); state == fasthttp.StateClosed {
		s.conns.Remove(c)
	}
}

// checkHost refuses requests for other names, which a page in a browser can make
// after rebinding its own name to this address.
func (s *DataServer) checkHost(ctx *fasthttp.RequestCtx) {
	if !httpserve.HostAllowed(view(ctx.Host()), s.cfg.Hosts) {
		s.refuse(ctx, routeNone, &problem{code: CodeWrongHost, detail: "want localhost, a loopback address or a configured name"})
		return
	}
	s.handle(ctx)
}

// handle answers one request. fasthttp lets a panic end the process, so it is
// caught here.
func (s *DataServer) handle(ctx *fasthttp.RequestCtx) {
	c := callOf(ctx)
	defer s.finish(ctx, c)
	if p := s.serve(ctx, c); p != nil {
		s.refuse(ctx, c.route, p)
	}
}

// finish ends the request, also one that ended in a panic.
func (s *DataServer) finish(ctx *fasthttp.RequestCtx, c *call) {
	if fault := recover(); fault != nil {
		s.log.Error("request handler panicked", "fault", fault, "route", c.route.String(), "stack", string(debug.Stack()))
		s.refuse(ctx, c.route, &problem{code: CodeInternal})
	}
	if s.draining.Load() {
		ctx.SetConnectionClose()
	}
}

func (s *DataServer) refuse(ctx *fasthttp.RequestCtx, r route, p *problem) {
	p.write(ctx)
	s.counters.add(ctx.ConnID(), r, firstProblem+outcome(p.code.index()))
}

// unreadable answers what could not be read as a request; the connection is
// closed afterwards.
func (s *DataServer) unreadable(ctx *fasthttp.RequestCtx, err error) {
	p := unreadable()
	var timeout net.Error
	switch {
	case errors.As(err, new(*fasthttp.ErrSmallBuffer)):
		p = &problem{code: CodeHeaderTooLarge, detail: "want at most 8 KiB of request line and header"}
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		p = &problem{code: CodeBodyTooLarge, detail: "want at most 256 KiB"}
	case errors.As(err, &timeout) && timeout.Timeout():
		p = &problem{code: CodeTimeout}
	}
	s.refuse(ctx, routeNone, p)
}
