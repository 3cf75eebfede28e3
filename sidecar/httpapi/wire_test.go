package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"rankcache/internal/httpserve"
	"rankcache/internal/testkit/fixture"
	"rankcache/sidecar"
	"rankcache/sidecar/encode"
)

const closing = "Connection: close\r\n\r\n"

// statuses returns the status codes of the responses in a stream.
func statuses(t *testing.T, stream string) (codes []int) {
	t.Helper()
	r := bufio.NewReader(strings.NewReader(stream))
	for {
		if _, err := r.Peek(1); err != nil {
			return codes
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%v in %q", err, stream)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatalf("%v in %q", err, stream)
		}
		codes = append(codes, res.StatusCode)
	}
}

// TestPipelining: requests sent in one piece are answered in their order, on TCP
// and on the socket.
func TestPipelining(t *testing.T) {
	s := start(t, newEnv(), Config{})
	for _, network := range []string{"tcp", "unix"} {
		var requests strings.Builder
		for i := range 20 {
			fmt.Fprintf(&requests, "GET /v1/boards/local/top?limit=1&start=%d HTTP/1.1\r\nHost: localhost\r\n\r\n", i)
		}
		requests.WriteString("GET /v1/boards/shut/top HTTP/1.1\r\nHost: localhost\r\n" + closing)
		stream := s.raw(t, network, requests.String())
		at := -1
		for i := range 20 {
			next := strings.Index(stream, fmt.Sprintf(`"start":%d,`, i))
			if next < at {
				t.Fatalf("%s: answer %d is missing or before the one in front of it", network, i)
			}
			at = next
		}
		if codes := statuses(t, stream); len(codes) != 21 || codes[20] != 403 {
			t.Errorf("%s: %v", network, codes)
		}
	}
}

// TestUnreadable sends what no client should send. Each must be refused with a
// encode.Problem, nothing behind it may be answered as a request of its own, and the
// connection must end.
func TestUnreadable(t *testing.T) {
	s := start(t, newEnv(), Config{})
	const get = "GET /v1/boards/local/top?limit=1 HTTP/1.1\r\nHost: localhost\r\n"
	const post = "POST /v1/boards/local/members:batch HTTP/1.1\r\nHost: localhost\r\n"
	const smuggled = "GET /v1/boards/shut/top HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for _, c := range []struct {
		name, request string
		status        int
		code          encode.Code
	}{
		{"length and chunked", post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, 400, encode.CodeBadRequest},
		{"two lengths", post + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd" + smuggled, 400, encode.CodeBadRequest},
		{"two equal lengths", post + "Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd" + smuggled, 400, encode.CodeBadRequest},
		{"negative length", post + "Content-Length: -1\r\n\r\n" + smuggled, 400, encode.CodeBadRequest},
		{"length with a sign", post + "Content-Length: +4\r\n\r\nabcd" + smuggled, 400, encode.CodeBadRequest},
		{"unknown coding", post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + smuggled, 400, encode.CodeBadRequest},
		{"chunked twice", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, 400, encode.CodeBadRequest},
		{"broken chunk", post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + smuggled, 400, encode.CodeBadRequest},
		{"space before the colon", get + "Content-Length : 5\r\n\r\n" + smuggled, 400, encode.CodeBadRequest},
		{"length and chunked on a GET", get + "Transfer-Encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n" + smuggled, 400, encode.CodeBadRequest},
		{"two hosts", get + "Host: localhost\r\n\r\n" + smuggled, 400, encode.CodeBadRequest},
		{"no host", "GET / HTTP/1.1\r\n\r\n" + smuggled, 400, encode.CodeBadRequest},
		{"no version", "GET /v1/boards/local/top\r\n\r\n", 400, encode.CodeBadRequest},
		{"version 2", "GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 400, encode.CodeBadRequest},
		{"random bytes", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, encode.CodeBadRequest},
		{"zero byte in a header", get + "X: a\x00b\r\n\r\n", 400, encode.CodeBadRequest},
		{"big header", get + "X: " + strings.Repeat("x", maxHeader) + "\r\n\r\n", 431, encode.CodeHeaderTooLarge},
		{"big path", "GET /" + strings.Repeat("x", maxHeader) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 431, encode.CodeHeaderTooLarge},
		{"big body", post + fmt.Sprintf("Content-Length: %d\r\n\r\n", maxBody+1), 413, encode.CodeBodyTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			stream := s.raw(t, "tcp", c.request)
			res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(stream)), nil)
			if err != nil {
				t.Fatalf("%v in %q", err, stream)
			}
			body, _ := io.ReadAll(res.Body)
			checkProblem(t, answer{res.StatusCode, res.Header, string(body)}, c.status, c.code, "")
			if codes := statuses(t, stream); len(codes) != 1 || !res.Close {
				t.Errorf("%d answers, close %v: %q", len(codes), res.Close, stream)
			}
		})
	}
}

// TestBodyOfGet: a body that a GET should not have is read past, not taken for
// the next request.
func TestBodyOfGet(t *testing.T) {
	s := start(t, newEnv(), Config{})
	const inner = "GET /v1/boards/shut/top HTTP/1.1\r\nHost: localhost\r\n\r\n"
	stream := s.raw(t, "tcp", fmt.Sprintf("GET /v1/boards/tiny/top HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(inner), inner)+
		"GET /v1/boards/local/top HTTP/1.1\r\nHost: localhost\r\n"+closing)
	if codes := statuses(t, stream); len(codes) != 2 || codes[0] != 200 || codes[1] != 200 {
		t.Errorf("%v", codes)
	}
}

func TestBigChunkedBody(t *testing.T) {
	s := start(t, newEnv(), Config{})
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat("x", 64<<10))
	stream := s.raw(t, "tcp", "POST /v1/boards/local/members:batch HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"+
		strings.Repeat(chunk, 5)+"0\r\n\r\n")
	if !strings.HasPrefix(stream, "HTTP/1.1 413 ") && stream != "" { // the close may overtake the answer
		t.Errorf("%.80q", stream)
	}
}

func TestHosts(t *testing.T) {
	s := start(t, newEnv(), Config{Hosts: []string{"rank.internal"}})
	const path = "/v1/boards/local/top?limit=1"
	for host, status := range map[string]int{
		"localhost": 200, "LocalHost:8970": 200, "127.0.0.1": 200, "127.0.0.1:1": 200, "127.9.9.9": 200,
		"[::1]": 200, "[::1]:8970": 200, "rank.internal": 200, "Rank.Internal:8970": 200,
		"evil.example": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "10.0.0.1": 421, "[::2]": 421,
		"rank.internal.evil.example": 421,
	} {
		if a := s.get(t, path, "Host", host); a.status != status {
			t.Errorf("Host %s: %d, want %d", host, a.status, status)
		}
	}
	checkProblem(t, s.get(t, path, "Host", "evil.example"), 421, encode.CodeWrongHost, "")
	// A request may name its host in its target, which then counts.
	if codes := statuses(t, s.raw(t, "tcp", "GET http://evil.example"+path+" HTTP/1.1\r\nHost: localhost\r\n"+closing)); codes[0] != 421 {
		t.Errorf("absolute target: %v", codes)
	}
	if codes := statuses(t, s.raw(t, "tcp", "GET http://localhost"+path+" HTTP/1.1\r\nHost: localhost\r\n"+closing)); codes[0] != 200 {
		t.Errorf("absolute target of our own: %v", codes)
	}
	for target, status := range map[string]int{path + "#part": 200, "//evil.example" + path: 404, "*": 404, "localhost" + path: 400} {
		if codes := statuses(t, s.raw(t, "tcp", "GET "+target+" HTTP/1.1\r\nHost: localhost\r\n"+closing)); codes[0] != status {
			t.Errorf("target %s: %v, want %d", target, codes, status)
		}
	}
	if codes := statuses(t, s.raw(t, "unix", "GET "+path+" HTTP/1.1\r\nHost: anything\r\n"+closing)); codes[0] != 200 {
		t.Errorf("socket: %v", codes)
	}
}

// TestSlowClients: a request that does not come to an end is cut off, at its
// header, in its body, or dripping byte by byte; so is an idle connection.
func TestSlowClients(t *testing.T) {
	const limit = 300 * time.Millisecond
	s := start(t, newEnv(), Config{ReadTimeout: limit, IdleTimeout: limit})
	for name, begin := range map[string]string{
		"header": "GET /v1/boards/local/top HTTP/1.1\r\nHost: localh",
		"body":   "POST /v1/boards/local/members:batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
	} {
		stream := s.raw(t, "tcp", begin)
		if codes := statuses(t, stream); len(codes) != 1 || codes[0] != 408 {
			t.Errorf("%s: %q", name, stream)
		}
	}
	if stream := s.raw(t, "tcp", "GET /v1/boards/tiny/top HTTP/1.1\r\nHost: localhost\r\n\r\n"); len(statuses(t, stream)) != 1 {
		t.Errorf("idle after a request: %q", stream) // answered, and closed without a word
	}
	t.Run("drip", func(t *testing.T) { drip(t, s, limit/20) })
}

// drip sends a header that never ends until the server closes the connection.
func drip(t *testing.T, s *running, every time.Duration) {
	conn, err := net.Dial("tcp", s.tcp)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
		for tick := time.NewTicker(every); err == nil; <-tick.C {
			_, err = conn.Write([]byte("x"))
		}
	}()
	if data, err := io.ReadAll(conn); len(data) == 0 && err == nil {
		t.Error("closed without an answer")
	}
}

// TestDrain: a request in hand is finished when serving ends, and reports that the
// connection ends with it; so does every answer after Drain.
func TestDrain(t *testing.T) {
	env := newEnv()
	env.Origin.Hold = make(chan struct{})
	s, err := New(env.reader(), Config{}, fixture.FailOnWarn(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := httpserve.Listen("127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served, answered := make(chan error, 1), make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	go func() {
		res, err := http.Get("http://" + ln.Addr().String() + "/v1/boards/any/top")
		if err == nil && (res.StatusCode != 200 || !res.Close) {
			err = fmt.Errorf("%d, close %v", res.StatusCode, res.Close)
		}
		answered <- err
	}()
	for env.Origin.Calls.Load() == 0 { // until the request is in hand
		time.Sleep(time.Millisecond)
	}
	stop()
	for !s.draining.Load() {
		time.Sleep(time.Millisecond)
	}
	close(env.Origin.Hold)
	if err := <-answered; err != nil {
		t.Errorf("request in hand: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// TestServeAfterTheEnd: a context that is done before serving began leaves
// nothing behind.
func TestServeAfterTheEnd(t *testing.T) {
	s, err := New(newEnv().reader(), Config{}, fixture.FailOnWarn(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := httpserve.Listen("127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := s.Serve(ctx, ln); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		t.Error("the listener is still open")
	}
}

// TestPanic: a fault answers 500 without a word of what it was, is logged, and
// leaves the process and the connection alive.
func TestPanic(t *testing.T) {
	env := newEnv()
	cfg := env.config()
	cfg.Boards = fixture.Boards[sidecar.Board]{"local": nil} // an open board that is nil
	r := readerOf(t, cfg)
	var logged strings.Builder
	s, err := New(r, Config{}, slog.New(slog.NewTextHandler(&logged, nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := requestCtx("/v1/boards/local/top")
	s.handle(ctx)
	if got := ctx.Response.String(); ctx.Response.StatusCode() != 500 || strings.Contains(got, "nil pointer") || strings.Contains(got, ".go") {
		t.Errorf("%s", got)
	}
	if !strings.Contains(logged.String(), "nil pointer") {
		t.Errorf("log: %s", &logged)
	}
}
