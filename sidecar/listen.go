package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/net/netutil"
)

// Defaults of [ServeHTTP].
const (
	DefaultHTTPConns        = 64
	DefaultHTTPReadTimeout  = 5 * time.Second
	DefaultHTTPWriteTimeout = 90 * time.Second // a CPU profile takes 30 s by default
	DefaultHTTPIdleTimeout  = 30 * time.Second
	// DefaultHTTPDrainTimeout is longer than the five seconds for which net/http lets
	// connections live that have sent nothing yet, such as a browser's spare ones.
	DefaultHTTPDrainTimeout = 7 * time.Second
)

// HTTPConfig is how [ServeHTTP] behaves; zeros take the defaults.
type HTTPConfig struct {
	Hosts        []string // as in [DataConfig]
	MaxConns     int      // more wait to be accepted
	ReadTimeout  time.Duration
	WriteTimeout time.Duration
	IdleTimeout  time.Duration
	DrainTimeout time.Duration
}

// ServeHTTP answers requests on ln with h until ctx is done, then closes ln,
// finishes the requests in hand and returns. It is for the health and the admin
// listener, which are asked seldom; see [DataServer] for the other.
func ServeHTTP(ctx context.Context, ln net.Listener, h http.Handler, cfg HTTPConfig, log *slog.Logger) error {
	if onLoopback(ln.Addr()) {
		h = CheckHost(cfg.Hosts, h)
	}
	srv := &http.Server{
		Handler: h, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		MaxHeaderBytes:    maxHeader - 4096, // net/http adds 4096 of its own
		ReadTimeout:       cmp.Or(cfg.ReadTimeout, DefaultHTTPReadTimeout),
		ReadHeaderTimeout: cmp.Or(cfg.ReadTimeout, DefaultHTTPReadTimeout),
		WriteTimeout:      cmp.Or(cfg.WriteTimeout, DefaultHTTPWriteTimeout),
		IdleTimeout:       cmp.Or(cfg.IdleTimeout, DefaultHTTPIdleTimeout),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(netutil.LimitListener(ln, cmp.Or(cfg.MaxConns, DefaultHTTPConns))) }()
	select {
	case err := <-failed:
		return fmt.Errorf("listener %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	drain := cmp.Or(cfg.DrainTimeout, DefaultHTTPDrainTimeout)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		_ = srv.Close()
		return fmt.Errorf("listener %s: requests unfinished after %v: %w", ln.Addr(), drain, err)
	}
	<-failed
	return nil
}

// Listen opens a listener for "host:port" or "unix:/path". A socket that nobody
// listens on any more is removed first; the new one is open to its owner and
// group only.
func Listen(addr string) (net.Listener, error) {
	path, unix := strings.CutPrefix(addr, "unix:")
	if !unix {
		return net.Listen("tcp", addr)
	}
	if err := removeDead(path); err != nil {
		return nil, err
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o660); err != nil {
		_ = ln.Close()
		return nil, err
	}
	return ln, nil
}

// removeDead removes a socket that refuses connections. Anything else is left,
// and the error of listening says so.
func removeDead(path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return nil
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		_ = conn.Close()
		return fmt.Errorf("socket %s: another process listens on it", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("socket %s: %w", path, err)
	}
	return nil
}
