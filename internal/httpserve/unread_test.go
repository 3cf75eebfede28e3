package httpserve

import (
	"io"
	"net/http"
	"testing"
	"time"

	"rankcache/internal/testkit/halfbody"
)

// unread are handlers that leave a body in each state.
var unread = map[string]http.HandlerFunc{
	"does not read": func(http.ResponseWriter, *http.Request) {},
	"closes":        func(_ http.ResponseWriter, r *http.Request) { _ = r.Body.Close() },
	"reads":         func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) },
	"limits":        readAll,
	"reads and closes": func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	},
	"reads a byte and closes": func(_ http.ResponseWriter, r *http.Request) {
		_, _ = r.Body.Read(make([]byte, 1))
		_ = r.Body.Close()
	},
	"wraps, reads and closes": func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, mostBytes)
		_, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	},
	"sends, reads and closes": func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		_, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	},
	"reads, closes and sends": func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
		_, _ = w.Write(make([]byte, 100<<10))
	},
}

// TestBodyIsNoRequest: what a client sends of a body behind the answer is not taken for its
// next request, whatever the handler did with the body.
func TestBodyIsNoRequest(t *testing.T) {
	for name, handler := range unread {
		post := halfbody.Request{Method: "POST", Path: "/x"}
		for framing := range halfbody.Framings {
			t.Run(name+"/"+framing, func(t *testing.T) {
				t.Parallel()
				s := serveWith(t, Config{ReadTimeout: 100 * time.Millisecond}, handler)
				halfbody.HTTP1(t, "tcp", s.addr, post, framing)
				s.wantHandled(t, "/x")
			})
		}
		t.Run(name+"/http2", func(t *testing.T) {
			t.Parallel()
			s := serveWith(t, Config{HTTP2: true, ReadTimeout: 100 * time.Millisecond}, handler)
			halfbody.HTTP2(t, s.addr, post)
			s.wantHandled(t, "/x", "/next")
		})
	}
}

// wantHandled wants the handler to have had these requests.
func (s *served) wantHandled(t *testing.T, paths ...string) {
	t.Helper()
	for _, want := range paths {
		if path := <-s.begun; path != want {
			t.Errorf("%s was handled, want %s", path, want)
		}
	}
	if len(s.begun) > 0 {
		t.Errorf("%s was handled, too", <-s.begun)
	}
}
