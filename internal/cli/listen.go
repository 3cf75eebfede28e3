package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"rankcache/internal/doctor"
	"rankcache/internal/httpserve"
)

const unixPrefix = "unix:" // begins the address of a Unix socket

// FlagAddr is an address and the flag that names it. An empty address is none.
type FlagAddr struct {
	Flag, Addr string
	Conns      int  // most connections at once; 0: [httpserve.DefaultMaxConns]
	Files      int  // that each takes; 0: one
	Shares     bool // the connections of the address before it
}

type listener struct {
	net.Listener
	Flag string
	most int // connections at once
}

// Serve is [httpserve.Serve] with as many connections as l may have.
func (l listener) Serve(ctx context.Context, h http.Handler, cfg httpserve.Config, log *slog.Logger) error {
	cfg.MaxConns = l.most
	return httpserve.Serve(ctx, l, h, cfg, log)
}

// Listeners are the open listeners of one process.
type Listeners []listener

// OpenListeners opens all or none. Their connections leave open files to the rest of the process.
func OpenListeners(log *slog.Logger, addrs ...FlagAddr) (opened Listeners, err error) {
	limit, err := doctor.FileLimit()
	if err != nil {
		return nil, err
	}
	most := maxConns(limit, addrs, log)
	for i, a := range addrs {
		if a.Addr == "" {
			continue
		}
		ln, err := a.listen(log)
		if err != nil {
			opened.Close()
			return nil, err
		}
		opened = append(opened, listener{ln, a.Flag, most[i]})
	}
	return opened, nil
}

func (a FlagAddr) listen(log *slog.Logger) (net.Listener, error) {
	parsed, err := ParseAddress(a.Flag, a.Addr)
	if err != nil {
		return nil, err
	}
	on, err := parsed.listenOn()
	if err != nil {
		return nil, Usagef("--%s %q: %w", a.Flag, a.Addr, err)
	}
	ln, err := httpserve.Listen(on, log)
	if err != nil {
		return nil, a.explain(err)
	}
	return ln, nil
}

// explain adds to the error of listening what to check: another process only where the address is taken.
func (a FlagAddr) explain(err error) error {
	path, unix := strings.CutPrefix(a.Addr, unixPrefix)
	check := "check the address"
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && unix:
		return fmt.Errorf("--%s: %w: is %s a file that is no socket?", a.Flag, err, path)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("--%s: %w: is another rankcache running?", a.Flag, err)
	case errors.Is(err, fs.ErrNotExist) && unix:
		check = "make the folder " + filepath.Dir(path)
	case errors.Is(err, fs.ErrPermission) && unix:
		check = "let this user write to the folder " + filepath.Dir(path)
	case errors.Is(err, fs.ErrPermission):
		check = "ports below 1024 need a privilege, take another"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		check = "no network interface here has this address"
	case unix && len(path) > maxSocketPath:
		check = fmt.Sprintf("the path has more than %d bytes, take a shorter one", maxSocketPath)
	}
	return Usagef("--%s: %w: %s", a.Flag, err, check)
}

const maxSocketPath = 107 // the longest path of a socket that Linux takes, in bytes

// Addr returns where the listener of a flag listens, "" if there is none.
func (ls Listeners) Addr(flag string) string {
	for _, l := range ls {
		if l.Flag == flag {
			return l.Addr().String()
		}
	}
	return ""
}

// Most returns how many connections the listeners of one server may have, named by their flags.
func (ls Listeners) Most(flags ...string) (n int) {
	for _, l := range ls {
		if slices.Contains(flags, l.Flag) {
			n = l.most
		}
	}
	return n
}

// Close closes all.
func (ls Listeners) Close() {
	for _, l := range ls {
		l.Close()
	}
}

// UnixAddr returns the address of a socket file, "" for none.
func UnixAddr(file string) string {
	if file == "" {
		return ""
	}
	return unixPrefix + strings.TrimPrefix(file, unixPrefix)
}
