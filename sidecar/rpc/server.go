package rpc

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/internal/metric"
	v1 "rankcache/proto/rankcache/v1"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/sidecar/encode"
	"rankcache/sidecar/live"
)

// Defaults of [Config].
const (
	DefaultInterval     = live.DefaultInterval
	DefaultStreams      = live.DefaultStreams
	DefaultMaxConns     = 4096            // beside those of streams
	DefaultWriteTimeout = 5 * time.Second // one event or answer
	DefaultLifetime     = time.Hour
)

// Config is how the listener behaves; zeros take the defaults.
type Config struct {
	// Hosts are names that callers may use for a listener on loopback, beside localhost and loopback addresses.
	Hosts    []string
	Interval time.Duration // the shortest time between two events of a stream that tell of changes
	Streams  int           // most streams at once
	// MaxConns is the most connections, by [httpserve.Stage]; 0: [DefaultMaxConns] more than Streams.
	MaxConns     int
	WriteTimeout time.Duration
	ReadTimeout  time.Duration // a whole request
	Lifetime     time.Duration // of a stream, give or take a tenth; its client comes back
	Heartbeat    time.Duration // between two events that tell the age of the page
	Drain        time.Duration // how long the process still answers after [Server.Drain]: clients are told to come back later
	// Classes returns the rooms file in force, never nil; nil: there are no classes.
	Classes func() *rooms.File
	Now     func() time.Time // the clock that periods of classes run by; nil: time.Now
}

const otherRequests = 250 // how many requests beside streams one connection of HTTP/2 may have at once

// Server serves live pages.
type Server struct {
	cfg    Config
	reader *sidecar.Reader
	hub    *live.Hub
	log    *slog.Logger
	conns  *httpserve.Open

	reads     *prometheus.CounterVec
	durations *prometheus.HistogramVec
}

// New returns a server of r and registers its metrics. It starts nothing.
func New(r *sidecar.Reader, cfg Config, log *slog.Logger, reg prometheus.Registerer) (*Server, error) {
	cfg.Streams, cfg.WriteTimeout = cmp.Or(cfg.Streams, DefaultStreams), cmp.Or(cfg.WriteTimeout, DefaultWriteTimeout)
	cfg.Lifetime = cmp.Or(cfg.Lifetime, DefaultLifetime)
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
	set := metric.New(reg, "rpc_")
	s := &Server{cfg: cfg, reader: r, hub: hub, log: log, conns: httpserve.NewOpen(cfg.MaxConns),
		reads: set.Counters("reads_total", "Reads of boards over Connect and gRPC that were answered, by source. Watch is not among them.", "source"),
		durations: set.Histograms("duration_seconds", "Time from a decoded request of Connect or gRPC until its answer is ready to be encoded, by method and code (ok, or the code of the error). Watch is not among them.",
			[]float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}, "method", "code")}
	set.GaugeFunc("connections", "Connections now open to the listener for live pages, Connect and gRPC.", func() float64 { return float64(s.conns.Len()) })
	return s, set.Err()
}

type counted struct{ *Server } // reads boards, and counts the answers by source

func (c counted) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	c.reader.Read(ctx, qs, as)
	for i := range as {
		if as[i].Err == nil {
			c.reads.WithLabelValues(as[i].Source.String()).Inc()
		}
	}
}

// Conns returns how many connections are open now, and how many were ever accepted.
func (s *Server) Conns() (open int, ever uint64) {
	return s.conns.Len(), s.conns.Added()
}

// Changed tells that readers may see another state of a board. It returns at once, also before Serve.
func (s *Server) Changed(board rankcache.BoardID) { s.hub.Changed(board) }

// Drain ends all streams, those opened later too, with an event that tells so. Other requests go on.
func (s *Server) Drain() { s.hub.Drain() }

// Serve answers requests on ln until ctx is done, then ends the streams, finishes the requests in hand and returns.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	defer s.hub.Wait()
	defer s.Drain()
	defer context.AfterFunc(ctx, s.Drain)()
	return httpserve.Serve(ctx, ln, s.Handler(), httpserve.Config{Hosts: s.cfg.Hosts, Conns: s.conns, ReadTimeout: s.cfg.ReadTimeout, HTTP2: true, HTTP2Streams: cmp.Or(s.cfg.Streams, live.DefaultStreams) + otherRequests}, s.log)
}

// ServeLiveBoard answers GET /v1/boards/{board}/live for another listener, among Streams and until Drain.
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

func measured(by *prometheus.HistogramVec) connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			begun := time.Now()
			answer, err := next(ctx, r)
			code := "ok"
			if err != nil {
				code = connect.CodeOf(err).String()
			}
			method := r.Spec().Procedure[strings.LastIndexByte(r.Spec().Procedure, '/')+1:]
			by.WithLabelValues(method, code).Observe(time.Since(begun).Seconds())
			return answer, err
		}
	}
}

// errorOf returns the problem as a call's error, whose detail has HTTP's code.
func errorOf(p *encode.Problem) error {
	text := p.Info().Title
	if p.Argument != "" {
		text += ": " + p.Argument
	}
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	err := connect.NewError(connectCode(p), errors.New(text))
	if detail, failed := connect.NewErrorDetail(problemMessage(p)); failed == nil {
		err.AddDetail(detail)
	}
	return err
}

func problemMessage(p *encode.Problem) *v1.Problem {
	info := p.Info()
	return &v1.Problem{Code: string(p.Code), Status: int32(info.Status), Title: info.Title, Detail: p.Detail, Argument: p.Argument, Seq: p.Seq}
}

func connectCode(p *encode.Problem) connect.Code {
	switch p.Info().Status {
	case http.StatusBadRequest:
		return connect.CodeInvalidArgument
	case http.StatusForbidden:
		return connect.CodePermissionDenied
	case http.StatusNotFound:
		return connect.CodeNotFound
	case http.StatusConflict, http.StatusPreconditionFailed, http.StatusUnprocessableEntity:
		return connect.CodeFailedPrecondition
	case http.StatusServiceUnavailable:
		return connect.CodeUnavailable
	}
	return connect.CodeInternal
}
