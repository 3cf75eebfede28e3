package httpapi

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestRefusalReachesWhoWritesFirst: a client that sends all of its body before it reads gets
// the answer, not a reset.
func TestRefusalReachesWhoWritesFirst(t *testing.T) {
	s := start(t, newEnv(), Config{})
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat("x", 64<<10))
	for name, c := range map[string]struct{ request, status string }{
		"a little too large": {fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", batchLine, maxBody+1, strings.Repeat("x", maxBody+1)), "413"},
		"too large by far":   {fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", batchLine, 20*maxBody, strings.Repeat("x", 20*maxBody)), "413"},
		"chunks":             {batchLine + chunked + "\r\n" + strings.Repeat(chunk, 40) + "0\r\n\r\n", "413"},
		"malformed":          {batchLine + "A B: c\r\n\r\n" + strings.Repeat("x", 20*maxBody), "400"},
		"unknown version":    {"POST / HTTP/2.0\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n123456789" + strings.Repeat("x", 20*maxBody), "400"},
		"long head":          {"GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 20*maxBody), "431"},
	} {
		for _, network := range []string{"tcp", "unix"} {
			t.Run(name+" "+network, func(t *testing.T) {
				for range 10 {
					conn := s.dial(t, network).conn
					if _, err := io.WriteString(conn, c.request); err != nil {
						t.Fatalf("write: %v", err)
					}
					if got, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 "+c.status) {
						t.Fatalf("%v after %.60q", err, got)
					}
					conn.Close()
				}
			})
		}
	}
}

// TestRefusedClientsAreLeft: clients that go on sending, and clients that keep the
// connection open.
func TestRefusedClientsAreLeft(t *testing.T) {
	s := start(t, newEnv(), Config{})
	for name, rest := range map[string]string{"sends on": strings.Repeat("x", 1<<20), "keeps it": ""} {
		conn := s.dial(t, "tcp").conn
		_, err := fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n", batchLine, 1<<40)
		for began := 0; err == nil && began < 1<<10; began++ {
			if _, err = io.WriteString(conn, rest); rest == "" {
				break
			}
		}
		if rest != "" && err == nil {
			t.Errorf("%s: a whole GiB was read", name)
		}
		for s.conns.Len() > 0 { // until the test's time-out
			time.Sleep(time.Millisecond)
		}
	}
}

// TestRefusedGiveWay: one that is left to read its refusal does not keep out others.
func TestRefusedGiveWay(t *testing.T) {
	s := start(t, newEnv(), crowded(1))
	opened(t, s, fmt.Sprintf("%sContent-Length: %d\r\n\r\n", batchLine, maxBody+1))
	for range 20 {
		answered(t, opened(t, s, request))
	}
}

// TestSilentConnections: connections without a request are closed without an answer.
func TestSilentConnections(t *testing.T) {
	s := start(t, newEnv(), Config{ReadTimeout: 300 * time.Millisecond})
	for _, network := range []string{"tcp", "unix"} {
		if got := s.raw(t, network, ""); got != "" {
			t.Errorf("%s: %q", network, got)
		}
	}
	if n := s.counters.sum(routeNone, firstProblem); n != 0 {
		t.Errorf("%d requests are counted", n)
	}
	conn := s.dial(t, "tcp").conn // the same for a client that resets
	_ = conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}
