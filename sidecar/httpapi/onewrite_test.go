package httpapi

import (
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"rankcache/internal/httpserve"
)

// writesListener counts the writes to its connections, which hide their sockets.
type writesListener struct {
	net.Listener
	writes atomic.Int64
}

type writesConn struct {
	net.Conn
	writes *atomic.Int64
}

func (l *writesListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return writesConn{conn, &l.writes}, nil
}

func (c writesConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// TestPageIsOneWrite: a page as long as one of 50 rows with profiles is sent at once.
func TestPageIsOneWrite(t *testing.T) {
	const profiled = 8 << 10
	ln, err := httpserve.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	counted := &writesListener{Listener: ln}
	s := start(t, newEnv(), Config{})
	s.tcp = serveListener(t, s.Server, counted)
	for _, path := range []string{"/v1/boards/local/top?limit=300", "/v1/boards/any/top?limit=300"} {
		before := counted.writes.Load()
		a := s.get(t, path)
		if n := counted.writes.Load() - before; a.status != http.StatusOK || len(a.body) < profiled || n != 1 {
			t.Errorf("%s: %d, %d bytes in %d writes, want one and %d bytes or more", path, a.status, len(a.body), n, profiled)
		}
	}
}
