package httpserve

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// served is a listener of ours that is served until the test ends.
type served struct {
	addr  string
	begun chan string   // the path of each request that a handler has
	held  chan struct{} // ends the requests for /held
	next  http.Handler
}

// serve copies each body back.
func serve(t *testing.T, cfg Config) *served {
	t.Helper()
	return serveWith(t, cfg, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
}

func serveWith(t *testing.T, cfg Config, next http.Handler) *served {
	t.Helper()
	ln, err := Listen("127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := &served{ln.Addr().String(), make(chan string, 1000), make(chan struct{}), next}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, ln, s, cfg, failOnWarn(t)) }()
	t.Cleanup(func() {
		stop()
		<-done // that clients stay until they are cut off is what these tests are about
	})
	return s
}

// noTimeouts returns cfg with such time-outs that no connection ends by them.
func noTimeouts(cfg Config) Config {
	cfg.HeadTimeout, cfg.ReadTimeout, cfg.WriteTimeout, cfg.IdleTimeout = time.Hour, time.Hour, time.Hour, time.Hour
	return cfg
}

func (s *served) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.begun <- r.URL.Path
	if r.URL.Path == "/held" {
		<-s.held
	}
	s.next.ServeHTTP(w, r)
}

// failOnWarn is a log that fails the test on warnings: servers report there what
// they swallow.
func failOnWarn(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		t.Errorf("server log: %s", p)
		return len(p), nil
	}), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// dial opens a connection, and sends what is to come first on it.
func (s *served) dial(t *testing.T, first string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second)) // what hangs fails the test soon
	if _, err := io.WriteString(conn, first); err != nil && len(first) > 0 {
		t.Fatal(err)
	}
	return conn
}

// answer reads one answer to the end.
func answer(t *testing.T, conn net.Conn) *http.Response {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal("no answer: ", err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal("half an answer: ", err)
	}
	return res
}

const (
	whole    = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"
	halfHead = "GET /x HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
)

var kinds = map[string]Config{"admin and writer": {}, "health": ForProbes(nil)}

// TestSlowHeaders: 600 clients whose heads do not end keep no other client out.
func TestSlowHeaders(t *testing.T) {
	for name, cfg := range kinds {
		t.Run(name, func(t *testing.T) {
			s := serve(t, noTimeouts(cfg))
			for range 600 {
				s.dial(t, halfHead)
			}
			for range 10 {
				if res := answer(t, s.dial(t, whole)); res.StatusCode != 200 {
					t.Error(res.Status)
				}
			}
		})
	}
}

// TestHeldConnections: as many as may be open, each served once and then silent,
// keep no new client out.
func TestHeldConnections(t *testing.T) {
	for name, cfg := range kinds {
		t.Run(name, func(t *testing.T) {
			s := serve(t, noTimeouts(cfg))
			for range DefaultMaxConns {
				conn := s.dial(t, whole)
				if res := answer(t, conn); res.Close != cfg.NoKeepAlive {
					t.Errorf("Connection: close is %v", res.Close)
				}
			}
			for range 10 {
				answer(t, s.dial(t, whole))
			}
		})
	}
}

// TestHeadOfAProbeIsNotWaitedFor for as long as for that of another request.
func TestHeadOfAProbeIsNotWaitedFor(t *testing.T) {
	cfg := ForProbes(nil)
	if cfg.HeadTimeout > time.Second {
		t.Errorf("a head may take %v", cfg.HeadTimeout)
	}
	cfg.ReadTimeout = time.Hour
	slow := serve(t, cfg).dial(t, halfHead)
	if rest, err := io.ReadAll(slow); err != nil || strings.Contains(string(rest), " 200 ") {
		t.Errorf("%q, %v; want to be closed", rest, err)
	}
}

// TestRequestInProgressStays while others are silent, or half through a head or a
// body, whatever comes.
func TestRequestInProgressStays(t *testing.T) {
	s := serve(t, noTimeouts(Config{MaxConns: 8}))
	working := s.dial(t, "GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if path := <-s.begun; path != "/held" {
		t.Fatal(path)
	}
	for _, first := range []string{"", halfHead, "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1234"} {
		for range 20 {
			s.dial(t, first)
		}
		answer(t, s.dial(t, whole))
	}
	close(s.held)
	if res := answer(t, working); res.StatusCode != 200 {
		t.Error(res.Status)
	}
}

// TestAllInProgress: the request that has been in progress for longest is cut off for
// a new one.
func TestAllInProgress(t *testing.T) {
	s := serve(t, noTimeouts(Config{MaxConns: 2}))
	defer close(s.held)
	held := strings.Replace(whole, "/x", "/held", 1)
	oldest := s.dial(t, held)
	<-s.begun
	s.dial(t, held)
	<-s.begun
	answer(t, s.dial(t, whole))
	if rest, err := io.ReadAll(oldest); err != nil || len(rest) > 0 {
		t.Errorf("the oldest got %q, %v; want to be closed", rest, err)
	}
}

// TestSecondHead: a connection on which the next request begins is not idle any more,
// which net/http tells only when the head is complete.
func TestSecondHead(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	c := &conn{Conn: here, listener: &cappedListener{nil, NewOpen(1), time.Now()}}
	c.enter(Idle)
	go func() { _, _ = io.WriteString(there, halfHead) }()
	if _, err := c.Read(make([]byte, 100)); err != nil || c.Place().Stage() != ReadingHead {
		t.Errorf("stage %d, %v", c.Place().Stage(), err)
	}
}
