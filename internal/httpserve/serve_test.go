package httpserve

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestServe: the Host check on loopback, big headers, and an end in peace.
func TestServe(t *testing.T) {
	ln, err := Listen("127.0.0.1:0")
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
	ln, err := Listen("127.0.0.1:0")
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
