package httpapi

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rankcache/internal/httpserve"
	"rankcache/internal/testkit/apitest"
	"rankcache/internal/testkit/fixture"
	"rankcache/sidecar"
)

// running is a data server on a TCP port and a Unix socket.
type running struct {
	*Server
	tcp, unix string // addresses
	http      *http.Client
}

// start serves r until the test ends, and waits then until serving has ended.
func start(t testing.TB, env *testEnv, cfg Config) *running {
	t.Helper()
	return startReader(t, env.reader(), cfg, cmp.Or(env.log, fixture.FailOnWarn(t)))
}

func startReader(t testing.TB, r *sidecar.Reader, cfg Config, log *slog.Logger) *running {
	t.Helper()
	s, err := New(r, cfg, log, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := &running{Server: s, http: &http.Client{Transport: &http.Transport{DisableCompression: true}}}
	run.tcp = serveOn(t, s, "127.0.0.1:0")
	run.unix = serveOn(t, s, "unix:"+filepath.Join(t.TempDir(), "data.sock"))
	t.Cleanup(run.http.CloseIdleConnections)
	return run
}

func serveOn(t testing.TB, s *Server, addr string) string {
	t.Helper()
	ln, err := httpserve.Listen(addr, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return serveListener(t, s, ln)
}

func serveListener(t testing.TB, s *Server, ln net.Listener) string {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return ln.Addr().String()
}

// answer is one response, read whole.
type answer struct {
	status int
	header http.Header
	body   string
}

func (r *running) do(t testing.TB, method, path, body string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+r.tcp+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	res, err := r.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	inDocument(t, apitest.Exchange{Method: method, Target: path, RequestHeader: req.Header, RequestBody: body,
		Status: res.StatusCode, Header: res.Header, Body: string(data)})
	return answer{res.StatusCode, res.Header, string(data)}
}

func (r *running) get(t testing.TB, path string, header ...string) answer {
	t.Helper()
	return r.do(t, "GET", path, "", header...)
}

// raw sends bytes on a connection of its own and returns all that comes back
// until the server closes it; the request should ask for that.
func (r *running) raw(t testing.TB, network, request string) string {
	t.Helper()
	conn, err := net.Dial(network, map[string]string{"tcp": r.tcp, "unix": r.unix}[network])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second)) // a server that does not close fails the test soon
	go func() { _, _ = io.WriteString(conn, request) }()       // the server may answer and close before it has all
	data, _ := io.ReadAll(conn)                                // so may a reset end it
	return string(data)
}

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
	ln, err := httpserve.Listen("127.0.0.1:0", slog.New(slog.DiscardHandler))
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
