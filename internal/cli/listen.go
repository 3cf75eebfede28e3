package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"syscall"

	"rankcache/internal/httpserve"
)

// unixPrefix begins the address of a Unix socket.
const unixPrefix = "unix:"

// FlagAddr is an address and the flag that names it. An empty address is none.
type FlagAddr struct{ Flag, Addr string }

// listener is an open listener and the flag that configured it.
type listener struct {
	net.Listener
	Flag string
}

// Listeners are the open listeners of one process.
type Listeners []listener

// OpenListeners opens all or none.
func OpenListeners(addrs ...FlagAddr) (opened Listeners, err error) {
	for _, a := range addrs {
		if a.Addr == "" {
			continue
		}
		ln, err := a.listen()
		if err != nil {
			opened.Close()
			return nil, err
		}
		opened = append(opened, listener{ln, a.Flag})
	}
	return opened, nil
}

func (a FlagAddr) listen() (net.Listener, error) {
	parsed, err := ParseAddress(a.Flag, a.Addr)
	if err != nil {
		return nil, err
	}
	on, err := parsed.listenOn()
	if err != nil {
		return nil, Usagef("--%s %q: %w", a.Flag, a.Addr, err)
	}
	ln, err := httpserve.Listen(on)
	if err != nil {
		return nil, a.explain(err)
	}
	return ln, nil
}

// explain adds to the error of listening what to check. Only of an address that
// is taken is another process the cause; else the setting is wrong.
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

// maxSocketPath is the longest path of a socket that Linux takes, in bytes.
const maxSocketPath = 107

// Addr returns where the listener of a flag listens, "" if there is none.
func (ls Listeners) Addr(flag string) string {
	for _, l := range ls {
		if l.Flag == flag {
			return l.Addr().String()
		}
	}
	return ""
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
