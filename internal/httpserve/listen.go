package httpserve

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Listen opens "host:port" or "unix:/path". A socket without a listener is removed first; the new one is its owner's
// and group's. Accept fails only once it is closed: a shortage of open files or memory passes.
func Listen(addr string, log *slog.Logger) (net.Listener, error) {
	path, unix := strings.CutPrefix(addr, "unix:")
	if !unix {
		ln, err := net.Listen("tcp", addr)
		return lasting(ln, err, log)
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
	return lasting(ln, nil, log)
}

// removeDead removes a socket that refuses connections. Anything else is left, and then listening fails.
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

// The pauses after an Accept that failed: each is twice the one before.
const (
	firstPause = 5 * time.Millisecond
	maxPause   = time.Second
)

// lastingListener accepts again after every error but its own end.
type lastingListener struct {
	net.Listener
	log    *slog.Logger
	warned rate.Sometimes
	once   sync.Once
	closed chan struct{}
}

func lasting(ln net.Listener, err error, log *slog.Logger) (net.Listener, error) {
	if err != nil {
		return nil, err
	}
	return &lastingListener{Listener: ln, log: log, warned: rate.Sometimes{Interval: time.Second}, closed: make(chan struct{})}, nil
}

// Accept returns an error only if l is closed.
func (l *lastingListener) Accept() (net.Conn, error) {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		accepted, err := l.Listener.Accept()
		if err == nil || errors.Is(err, net.ErrClosed) {
			return accepted, err
		}
		l.warned.Do(func() { l.log.Warn("a listener can't accept, and tries again", "addr", l.Addr().String(), "err", err) })
		select {
		case <-l.closed:
			return nil, net.ErrClosed
		case <-time.After(pause):
		}
	}
}

func (l *lastingListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
