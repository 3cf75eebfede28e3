package httpserve

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

const mostBytes = 1 << 10

// readAll answers 200 when it has the body.
func readAll(w http.ResponseWriter, r *http.Request) {
	if _, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes)); err != nil {
		BodyProblem(err).Write(w)
	}
}

// serving returns the address of readAll.
func serving(t *testing.T, cfg Config) string {
	t.Helper()
	ln, err := Listen("127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- Serve(t.Context(), ln, http.HandlerFunc(readAll), cfg, failOnWarn(t)) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// exchange sends all of a request and then reads the answer.
func exchange(t *testing.T, addr, request string) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal("write: ", err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal("read: ", err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal("read: ", err)
	}
	return res, string(body)
}

// TestChunkedRequestsClose: net/http drops a Content-Length beside the chunks, so what
// follows may be a part of the request for another server.
func TestChunkedRequestsClose(t *testing.T) {
	addr := serving(t, Config{})
	const post = "POST / HTTP/1.1\r\nHost: localhost\r\n"
	for head, closes := range map[string]bool{
		"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n":                      true,
		"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n": true,
		"Content-Length: 1\r\n\r\nx":                                                 false,
	} {
		if res, _ := exchange(t, addr, post+head); res.StatusCode != 200 || res.Close != closes {
			t.Errorf("%q: %s, close %v", head, res.Status, res.Close)
		}
	}
}

// TestRefusalReachesWhoWritesFirst: a client that sends all of its body before it reads gets
// the answer, not a reset.
func TestRefusalReachesWhoWritesFirst(t *testing.T) {
	addr := serving(t, Config{})
	for _, length := range []int{mostBytes + 1, 300 << 10, 7 << 20} {
		for range 5 {
			res, body := exchange(t, addr, fmt.Sprintf("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", length, strings.Repeat("x", length)))
			if res.StatusCode != 413 || !res.Close || !strings.Contains(body, "want at most 1024 bytes") {
				t.Fatalf("%d bytes: %s, close %v, %s", length, res.Status, res.Close, body)
			}
		}
	}
}

// TestSlowBody: a client that does not send the rest gets 408.
func TestSlowBody(t *testing.T) {
	addr := serving(t, Config{ReadTimeout: 300 * time.Millisecond})
	res, body := exchange(t, addr, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx")
	if res.StatusCode != 408 || !res.Close || !strings.Contains(body, "request_timeout") {
		t.Errorf("%s, close %v, %s", res.Status, res.Close, body)
	}
}

// TestBodyProblem of a body that is broken off.
func TestBodyProblem(t *testing.T) {
	if p := BodyProblem(errors.New("unexpected EOF")); p.Status != 400 || p.Code != "bad_request" {
		t.Errorf("%+v", p)
	}
}
