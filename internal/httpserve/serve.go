// Package httpserve serves net/http on a capped listener, and has the helpers that its handlers
// share: Host and Origin checks, tokens, errors as application/problem+json.
//
// The path of a request: Accept adds the connection to the capped set, which closes another one if it is full (conn.go,
// conns.go); Host, Origin and token are checked (host.go, guard.go); the handler answers, errors by [Problem]
// (problem.go). The data port uses the same set of connections. Entry: [Serve].
//
// Words: a stage is how far a connection is with a request; its place is the stage and
// since when, and orders the set: the lowest place is closed first.
package httpserve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strings"
	"time"
)

const MaxHeader = 8 << 10 // how long request line and header may be, in bytes

// Defaults of [Serve].
const (
	DefaultMaxConns     = 64
	DefaultReadTimeout  = 5 * time.Second  // of heads, too
	DefaultWriteTimeout = 90 * time.Second // a CPU profile takes 30 s by default
	DefaultIdleTimeout  = 90 * time.Second // longer than proxies keep connections, so that they are who closes: nginx and ALB 60 s
	// DefaultDrainTimeout is longer than the 5 s that net/http gives connections that have sent nothing yet.
	DefaultDrainTimeout = 7 * time.Second
)

const probeHeadTimeout = time.Second // how long the head of a probe may take

// Config is how [Serve] behaves; zeros take the defaults.
type Config struct {
	// Hosts are names that callers may use for a listener on loopback, beside localhost and loopback addresses.
	Hosts        []string
	MaxConns     int           // at so many, one gives way to each new one, in the order of [Stage]
	Conns        *Open         // those that are open, for a caller that counts them; nil: MaxConns alone counts
	HeadTimeout  time.Duration // of a request
	ReadTimeout  time.Duration // a whole request
	WriteTimeout time.Duration
	IdleTimeout  time.Duration
	DrainTimeout time.Duration
	NoKeepAlive  bool // every answer ends its connection
	HTTP2        bool // beside HTTP/1.1, without TLS
	HTTP2Streams int  // most requests at once on one connection of HTTP/2; 0: net/http's, 250
}

// ForProbes returns the Config of a health port, which the network reaches and no client has a reason to keep.
func ForProbes(hosts []string) Config {
	return Config{Hosts: hosts, HeadTimeout: probeHeadTimeout, NoKeepAlive: true}
}

// Serve answers requests on ln with h until ctx is done, closes ln, finishes the requests in hand and returns. On
// loopback it answers only to loopback names and cfg.Hosts. The data port has a server of its own.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, cfg Config, log *slog.Logger) error {
	if OnLoopback(ln.Addr()) {
		h = CheckHost(cfg.Hosts, h)
	}
	if cfg.Conns == nil {
		cfg.Conns = NewOpen(cmp.Or(cfg.MaxConns, DefaultMaxConns))
	}
	srv := newServer(h, cfg, log)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(&cappedListener{ln, cfg.Conns, time.Now()}) }()
	select {
	case err := <-failed:
		return fmt.Errorf("listener %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	drain := cmp.Or(cfg.DrainTimeout, DefaultDrainTimeout)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		_ = srv.Close()
		return fmt.Errorf("listener %s: requests unfinished after %v: %w", ln.Addr(), drain, err)
	}
	<-failed
	return nil
}

// asWritten answers 404 where net/http would lead on to a tidier path, by HTML: ids and paths are taken as they are.
func asWritten(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := r.URL.EscapedPath()
		if tidy := path.Clean(asked); asked != tidy && asked != strings.TrimSuffix(tidy, "/")+"/" && asked != "" {
			Problem{Status: http.StatusNotFound, Code: "unknown_path", Title: "No such resource", Detail: "a path has no empty part, no . and no .. in it: percent-encode what is an id"}.Write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func newServer(h http.Handler, cfg Config, log *slog.Logger) *http.Server {
	read := cmp.Or(cfg.ReadTimeout, DefaultReadTimeout)
	srv := &http.Server{
		Handler: followed(asWritten(h), min(lingerTime, read)), ConnContext: withConn, ConnState: answered,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		MaxHeaderBytes:    MaxHeader - 4096, // net/http adds 4096 of its own
		ReadTimeout:       read,
		ReadHeaderTimeout: cmp.Or(cfg.HeadTimeout, DefaultReadTimeout),
		WriteTimeout:      cmp.Or(cfg.WriteTimeout, DefaultWriteTimeout),
		IdleTimeout:       cmp.Or(cfg.IdleTimeout, DefaultIdleTimeout),
	}
	srv.SetKeepAlivesEnabled(!cfg.NoKeepAlive)
	if cfg.HTTP2 {
		srv.Protocols = new(http.Protocols)
		srv.Protocols.SetHTTP1(true)
		srv.Protocols.SetUnencryptedHTTP2(true)
		srv.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: cfg.HTTP2Streams}
	}
	return srv
}
