package app

import (
	"io"
	"net"
	"net/http"
	"testing"

	"rankcache/internal/run"
)

// TestSlowHeadersKeepNoClientOut: on every port of the real processes, 600 clients send
// heads that do not end, and the next request is answered. internal/httpserve and sidecar
// test the order in which connections are closed.
func TestSlowHeadersKeepNoClientOut(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	s := h.serve(t)
	for _, port := range []struct {
		c              *child
		listener, path string
		slow, want     int
	}{
		{s, "data", "/openapi.yaml", 600, 200}, {s, "admin", "/livez", 600, 200}, {s, "health", "/livez", 600, 200},
		{h.writer, "scores", "/v1/scores", run.PostConns + 600, 405}, {h.writer, "health", "/livez", 600, 200},
	} {
		for range port.slow {
			conn, err := net.Dial("tcp", port.c.Addr(port.listener))
			must(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
			must(t, err)
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get(port.c.URL(port.listener, port.path))
		must(t, err)
		resp.Body.Close()
		if resp.StatusCode != port.want {
			t.Errorf("%s: %s", port.listener, resp.Status)
		}
	}
}
