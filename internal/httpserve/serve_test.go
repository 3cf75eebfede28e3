package httpserve

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
)

// TestServe: the Host check on loopback, big headers, and an end in peace.
func TestServe(t *testing.T) {
	ln, err := Listen("127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Serve(ctx, ln, ok, Config{}, failOnWarn(t))
	}()
	for _, c := range []struct {
		host, big string
		status    int
	}{{"localhost", "x", 200}, {"evil.example", "x", 421}, {"localhost", strings.Repeat("x", 2*MaxHeader), 431}} {
		req, _ := http.NewRequest("GET", "http://"+ln.Addr().String()+"/readyz", nil)
		req.Host = c.host
		req.Header.Set("X", c.big)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != c.status {
			t.Errorf("Host %s, header of %d: %d, want %d", c.host, len(c.big), res.StatusCode, c.status)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestServeEndsBesideSilentConnections: a browser opens spare connections on
// which nothing may ever come.
func TestServeEndsBesideSilentConnections(t *testing.T) {
	t.Parallel() // net/http waits for five seconds
	ln, err := Listen("127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan struct{}, 1)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Serve(ctx, telling{ln, accepted}, http.NotFoundHandler(), Config{}, failOnWarn(t))
	}()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	<-accepted
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// telling is a listener that tells when it has accepted a connection.
type telling struct {
	net.Listener
	accepted chan<- struct{}
}

func (l telling) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.accepted <- struct{}{}
	}
	return conn, err
}

// TestPathsAreTakenAsWritten: net/http would lead on to a tidier path, which is another id, by HTML.
func TestPathsAreTakenAsWritten(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	s := serveWith(t, Config{}, mux)
	for path, want := range map[string]string{
		"/a//b": "404 application/problem+json", "/a/../b": "404 application/problem+json", "/./a": "404 application/problem+json", "//": "404 application/problem+json",
		"/a%2F%2Fb/c": "200 ", "/a%2F..%2Fb": "200 ", "/a/": "200 ", "/": "200 ", "/...": "200 ",
	} {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(res.StatusCode, " ", res.Header.Get("Content-Type")); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
