package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"rankcache/internal/httpserve"
	"rankcache/internal/metric"
	"rankcache/sidecar"
	"rankcache/sidecar/encode"
	"rankcache/sidecar/internal/conn"
)

// Server answers the app. It may serve several listeners at once.
type Server struct {
	responder
	encoder
	cfg           Config
	classes       classes
	changes       changes
	cacheRequests bool
	clock         *conn.Clock
	second        atomic.Int64           // of date
	date          atomic.Pointer[[]byte] // the present as a Date field has it
	draining      atomic.Bool
	conns         *httpserve.Conns[*clientConn]
	lastConn      atomic.Uint64
	dropped       atomic.Int64 // the second in which previous pages were last dropped
}

// New returns a server of r and registers its metrics. It starts nothing.
func New(r *sidecar.Reader, cfg Config, log *slog.Logger, reg prometheus.Registerer) (*Server, error) {
	cfg = cfg.withDefaults()
	packer, err := newPacker()
	if err != nil {
		return nil, err
	}
	s := &Server{responder: responder{newCounters(), newDurations(), packer}, cfg: cfg, classes: classes{rooms: cfg.Classes}, changes: newChanges(cfg.Writer), conns: httpserve.NewConns[*clientConn](cfg.MaxConns)}
	s.encoder.init(r, cfg.Now, log)
	s.clock = conn.NewClock(conn.Limits{Read: cfg.ReadTimeout, Write: cfg.WriteTimeout, Idle: cfg.IdleTimeout}, s.tick)
	s.setDate(time.Now())
	s.cacheRequests = !cfg.NoRequestCache && trusted(checkLibrary(s.fasthttpServer(nil)), log)
	return s, s.register(reg)
}

func (s *Server) register(reg prometheus.Registerer) error {
	set := metric.New(reg, "data_")
	set.Add(s.counters)
	set.Add(s.durations)
	set.GaugeFunc("connections", "Connections now open to the data listeners.", func() float64 { return float64(s.conns.Len()) })
	return set.Err()
}

// tick is called some times a second, by the clock of each listener.
func (s *Server) tick(now time.Time) {
	s.setDate(now)
	if second := now.Unix(); s.dropped.Swap(second) != second {
		s.previous.drop()
	}
}

func (s *Server) setDate(now time.Time) {
	if second := now.Unix(); s.second.Swap(second) == second {
		return
	}
	date := fasthttp.AppendHTTPDate(nil, now)
	s.date.Store(&date)
}

// Conns returns how many connections are open now, and how many were ever accepted.
func (s *Server) Conns() (open int, ever uint64) { return s.conns.Len(), s.conns.Added() }

// Drain makes every answer end its connection, so that few are left, and reads no longer wait for local copies.
func (s *Server) Drain() {
	s.draining.Store(true)
	s.reader.EndWaits()
}

// Serve answers requests on ln until ctx is done, then closes ln, finishes the current requests and returns. It returns
// an error if ln failed, or if requests were still unfinished after DrainTimeout.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	srv := s.server(ln)
	stopClock := make(chan struct{})
	defer close(stopClock)
	go s.clock.Run(stopClock)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(cappedListener{ln, s, newRequestCache(s.cacheRequests)}) }()
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

func (s *Server) server(ln net.Listener) *fasthttp.Server {
	if httpserve.OnLoopback(ln.Addr()) {
		return s.fasthttpServer(s.checkVersion(s.checkHost))
	}
	return s.fasthttpServer(s.checkVersion(s.handle))
}

func (s *Server) fasthttpServer(handler fasthttp.RequestHandler) *fasthttp.Server {
	return &fasthttp.Server{
		HeaderReceived: fieldsRead, ExpectHandler: s.expected, Handler: handler, ErrorHandler: s.unreadable, ConnState: connState,
		// It logs broken requests and connections, which are counted.
		Logger: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		// Also those that gave way and have not ended yet; fasthttp answers 503 beyond.
		Concurrency: 2*s.cfg.MaxConns + 1024, ReadBufferSize: maxHeader, WriteBufferSize: WriteBuffer,
		MaxRequestBodySize: maxBody, // time-outs are those of conn.Conn
		CloseOnShutdown:    true, NoDefaultServerHeader: true, NoDefaultContentType: true,
		DisablePreParseMultipartForm: true, SecureErrorLogMessage: true,
	}
}

// checkVersion refuses versions that fasthttp lets pass, and answers requests about the server as a whole.
func (s *Server) checkVersion(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if c, ok := ctx.Conn().(*clientConn); ok {
			c.Enter(httpserve.Answering)
		}
		h := &ctx.Request.Header
		switch {
		case !h.IsHTTP11() && string(h.Protocol()) != "HTTP/1.0":
			s.refuse(ctx, routeNone, unreadable())
			setRefused(ctx)
		case h.IsOptions() && string(h.RequestURI()) == "*":
			ctx.SetStatusCode(fasthttp.StatusNoContent)
			ctx.Response.Header.Set("Allow", "GET, HEAD, POST, OPTIONS")
		default:
			next(ctx)
		}
	}
}

// checkHost refuses other names, by which a page in a browser could come that has rebound its own.
func (s *Server) checkHost(ctx *fasthttp.RequestCtx) {
	if !httpserve.HostAllowed(view(ctx.Host()), s.cfg.Hosts) {
		s.refuse(ctx, routeNone, &encode.Problem{Code: encode.CodeWrongHost, Detail: "want localhost, a loopback address or a configured name"})
		return
	}
	s.handle(ctx)
}

// handle answers one request. fasthttp lets a panic end the process, so it is caught here.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	c := callOf(ctx)
	defer s.finish(ctx, c)
	if p := s.serve(ctx, c); p != nil {
		s.refuse(ctx, c.route, p)
	}
}

// finish ends the request, also one that ended in a panic.
func (s *Server) finish(ctx *fasthttp.RequestCtx, c *call) {
	defer c.release()
	if fault := recover(); fault != nil {
		s.log.Error("request handler panicked", "fault", fault, "route", c.route.String(), "stack", string(debug.Stack()))
		s.refuse(ctx, c.route, &encode.Problem{Code: encode.CodeInternal})
	}
	if s.draining.Load() {
		ctx.SetConnectionClose()
	}
}

func (s *Server) refuse(ctx *fasthttp.RequestCtx, r route, p *encode.Problem) {
	writeProblem(ctx, p)
	s.count(ctx, r, firstProblem+outcome(p.Code.Index()))
}

// unreadable answers a request that could not be parsed.
func (s *Server) unreadable(ctx *fasthttp.RequestCtx, err error) {
	p := unreadable()
	var timeout net.Error
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		p = refused.Problem
	case errors.As(err, new(*fasthttp.ErrSmallBuffer)):
		p = &encode.Problem{Code: encode.CodeHeaderTooLarge, Detail: "want at most 8 KiB of request line and header"}
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		p = &encode.Problem{Code: encode.CodeBodyTooLarge, Detail: "want at most 256 KiB"}
	case errors.As(err, &timeout) && timeout.Timeout():
		p = &encode.Problem{Code: encode.CodeTimeout}
	}
	s.refuse(ctx, routeNone, p)
	setRefused(ctx)
}

func unreadable() *encode.Problem {
	return &encode.Problem{Code: encode.CodeBadRequest, Detail: "the request is not well-formed HTTP/1.1"}
}

// fieldsRead has fasthttp understand fields in any spelling: Connection is a list, and letters of either case are the
// same. A client without a body waits for no 100, and HTTP/1.0 does not know it.
func fieldsRead(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if !h.ConnectionClose() && hasOption(h.RawHeaders(), fasthttp.HeaderConnection, "close") {
		h.SetConnectionClose()
	}
	if hasOption(h.RawHeaders(), fasthttp.HeaderExpect, expectContinue) {
		const chunked = -1
		if length := h.ContentLength(); h.IsHTTP11() && (length > 0 || length == chunked) {
			h.Set(fasthttp.HeaderExpect, expectContinue)
		} else {
			h.Del(fasthttp.HeaderExpect)
		}
	}
	return fasthttp.RequestConfig{}
}

const expectContinue = "100-continue"

// hasOption reports whether a field's lists hold the option, in the raw head: fasthttp forgets earlier lines.
func hasOption(head []byte, field, option string) bool {
	for line := range bytes.SplitSeq(head, []byte(lineEnd)) {
		name, list, _ := bytes.Cut(line, []byte(":"))
		if !bytes.EqualFold(name, []byte(field)) {
			continue
		}
		for o := range bytes.SplitSeq(list, []byte(",")) {
			if bytes.EqualFold(bytes.TrimSpace(o), []byte(option)) {
				return true
			}
		}
	}
	return false
}

// expected decides whether a client that waits for a 100 gets it: not before a sure 413.
func (s *Server) expected(ctx *fasthttp.RequestCtx) int {
	if ctx.Request.Header.ContentLength() <= maxBody {
		return fasthttp.StatusContinue
	}
	s.unreadable(ctx, fasthttp.ErrBodyTooLarge)
	return fasthttp.StatusRequestEntityTooLarge
}
