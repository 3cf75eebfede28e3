package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
	"rankcache/rooms"
	"rankcache/sidecar"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// env is a listener and everything that it reads from.
type env struct {
	*fixture.Env
	*Server
	t      testing.TB
	addr   string
	tiers  atomic.Pointer[rooms.Tiers]
	reader *sidecar.Reader
	stop   context.CancelFunc
	ended  chan error
}

// start starts a listener. change may set what it is configured with.
func start(t testing.TB, change ...func(*Config)) *env {
	t.Helper()
	return startLogging(t, fixture.FailOnWarn(t), change...)
}

func startLogging(t testing.TB, log *slog.Logger, change ...func(*Config)) *env {
	t.Helper()
	e := &env{Env: fixture.New(), t: t, ended: make(chan error, 1)}
	e.tiers.Store(fixture.Tiers(fixture.Rooms)())
	var err error
	e.reader, err = sidecar.NewReader(sidecar.Config{Tiers: e.tiers.Load, Boards: fixture.Boards[sidecar.Board]{"local": e.Local, "tiny": e.Tiny},
		Hot: e.Hot, Origin: e.Origin, Profiles: e.Profiles}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e.listen(log, change)
	return e
}

// listen has the environment answer from its reader until the test ends.
func (e *env) listen(log *slog.Logger, change []func(*Config)) {
	t := e.t
	t.Helper()
	var err error
	cfg := Config{Interval: time.Millisecond, Heartbeat: time.Minute} // no age events but where a test wants them
	for _, c := range change {
		c(&cfg)
	}
	if e.Server, err = New(e.reader, cfg, log, nil); err != nil {
		t.Fatal(err)
	}
	ln := testkit.Listen(t, "tcp")
	e.addr = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	e.stop = cancel
	go func() { e.ended <- e.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-e.ended; err != nil {
			t.Error(err)
		}
	})
}

// publish moves the board "local" to a seq.
func (e *env) publish(seq uint64) {
	e.Local.Publish(seq)
	e.Changed("local")
}

func (e *env) url(path string) string { return "http://" + e.addr + path }

// events is one client's stream of server-sent events.
type events struct {
	t     testing.TB
	lines *bufio.Scanner
	close func() error
}

// event is one of them.
type event struct {
	name, id, retry string
	data            map[string]any
}

// watch opens a stream. protocols nil: HTTP/1.1.
func (e *env) watch(path, lastID string, protocols *http.Protocols) *events {
	e.t.Helper()
	return e.watchBody(path, lastID, protocols, nil)
}

// watchBody is watch with a body of the request.
func (e *env) watchBody(path, lastID string, protocols *http.Protocols, body io.Reader) *events {
	e.t.Helper()
	transport := &http.Transport{Protocols: protocols}
	e.t.Cleanup(transport.CloseIdleConnections)
	req, err := http.NewRequestWithContext(e.t.Context(), http.MethodGet, e.url(path), body)
	if err != nil {
		e.t.Fatal(err)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		e.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("X-Accel-Buffering") != "no" {
		e.t.Fatalf("%s: %s %v", path, res.Status, res.Header)
	}
	e.t.Cleanup(func() { _ = res.Body.Close() })
	s := &events{e.t, bufio.NewScanner(res.Body), res.Body.Close}
	s.lines.Buffer(nil, 1<<20)
	return s
}

// next returns the next event, false at the end of the stream.
func (s *events) next() (ev event, ok bool) {
	s.t.Helper()
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "":
			return ev, true
		case "event":
			ev.name = value
		case "id":
			ev.id = value
		case "retry":
			ev.retry = value
		case "data":
			if err := json.Unmarshal([]byte(value), &ev.data); err != nil {
				s.t.Fatalf("%v: %.200s", err, value)
			}
		}
	}
	return ev, false
}

// want returns the next event, which must have a name.
func (s *events) want(name string) event {
	s.t.Helper()
	ev, ok := s.next()
	if !ok || ev.name != name {
		s.t.Fatalf("event %+v (%t, %v), want %s", ev, ok, s.lines.Err(), name)
	}
	return ev
}

func dial(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}
