package httpserve

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
)

// Listen opens a listener for "host:port" or "unix:/path". A socket that no process
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
// and then listening fails.
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
