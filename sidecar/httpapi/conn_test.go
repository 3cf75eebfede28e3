package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"rankcache/internal/httpserve"
	"rankcache/internal/testkit"
)

// crowded is a configuration with so few connections that a test can open more, none
// of which ends by a time-out.
func crowded(most int) Config {
	return Config{MaxConns: most, ReadTimeout: time.Hour, WriteTimeout: time.Hour, IdleTimeout: time.Hour}
}

const (
	request  = "GET /v1/boards/tiny/top HTTP/1.1\r\nHost: localhost\r\n\r\n"
	halfHead = "GET /v1/boards/tiny/top HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
	halfBody = "POST /v1/boards/tiny/members:batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
)

// opened returns a connection on which first has been sent.
func opened(t *testing.T, s *running, first string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.tcp)
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

// answered reads one answer, which is to be 200.
func answered(t *testing.T, conn net.Conn) {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal("no answer: ", err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != 200 {
		t.Errorf("%s, %v", res.Status, err)
	}
}

// TestNewClientsAreServed beside clients that are silent, or whose heads or bodies do not
// end, or as many answered once as may be open.
func TestNewClientsAreServed(t *testing.T) {
	const most = 64
	s := start(t, newEnv(), crowded(most))
	for _, first := range []string{"", halfHead, halfBody, "GET"} {
		for range 600 {
			opened(t, s, first)
		}
		answered(t, opened(t, s, request))
	}
	for range 3 * most {
		answered(t, opened(t, s, request))
	}
	if n := s.conns.Len(); n > most {
		t.Errorf("%d connections are open", n)
	}
}

// TestRequestInProgressStays, whatever comes meanwhile, and idle connections go only
// when there is none without a complete request.
func TestRequestInProgressStays(t *testing.T) {
	env := newEnv()
	env.Origin.Hold = make(chan struct{})
	env.log = slog.New(slog.DiscardHandler) // a slow machine may make the held read fail
	s := start(t, env, crowded(8))
	working := opened(t, s, strings.Replace(request, "tiny", "any", 1))
	for env.Origin.Calls.Load() == 0 { // until it is in hand
		time.Sleep(time.Millisecond)
	}
	idle := opened(t, s, request)
	answered(t, idle)
	s.await(t, httpserve.Idle)
	for range 50 {
		opened(t, s, halfHead)
		opened(t, s, "")
	}
	answered(t, opened(t, s, request)) // accepted in turn: the others have been, too
	_, _ = io.WriteString(idle, request)
	answered(t, idle)
	for range 50 {
		answered(t, opened(t, s, request))
	}
	close(env.Origin.Hold)
	res, err := http.ReadResponse(bufio.NewReader(working), nil)
	if err != nil {
		t.Fatal("the request in progress: ", err)
	}
	if res.StatusCode != 200 && res.StatusCode != 503 { // 503: Redis was slow, but it was answered
		t.Errorf("the request in progress: %s", res.Status)
	}
}

// await waits until one connection of the server is in a stage.
func (r *running) await(t *testing.T, want httpserve.Stage) {
	t.Helper()
	testkit.Eventually(t, 20*time.Second, func() error {
		for _, c := range r.conns.All() {
			if c.Place().Stage() == want {
				return nil
			}
		}
		return fmt.Errorf("no connection is in stage %d", want)
	})
}

// TestAllInProgress: the request that has been in progress for longest is cut off for
// a new one.
func TestAllInProgress(t *testing.T) {
	env := newEnv()
	env.Origin.Hold = make(chan struct{})
	env.log = slog.New(slog.DiscardHandler)
	s := start(t, env, crowded(1))
	oldest := opened(t, s, strings.Replace(request, "tiny", "any", 1))
	s.await(t, httpserve.Answering)
	answered(t, opened(t, s, request))
	if rest, err := io.ReadAll(oldest); err != nil || len(rest) > 0 {
		t.Errorf("the oldest got %q, %v; want to be closed", rest, err)
	}
	close(env.Origin.Hold)
}

// TestSecondHead: a connection on which the next request begins is not idle any more.
func TestSecondHead(t *testing.T) {
	s := start(t, newEnv(), crowded(8))
	conn := opened(t, s, request)
	answered(t, conn)
	s.await(t, httpserve.Idle)
	_, _ = io.WriteString(conn, halfHead)
	s.await(t, httpserve.ReadingHead)
}
