package profile

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rankcache/internal/testkit"
)

func httpSource(t *testing.T, url string, edit func(*HTTPOptions)) *HTTP {
	t.Helper()
	opts := HTTPOptions{URL: url, Timeout: 5 * time.Second}
	if edit != nil {
		edit(&opts)
	}
	h, err := NewHTTP(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func load(t *testing.T, s Source, members ...string) ([]Answer, error) {
	t.Helper()
	answers := make([]Answer, len(members))
	err := s.Load(t.Context(), members, answers)
	return answers, err
}

func TestHTTPRequest(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if want := `{"members":["1","ü\"x"]}`; string(body) != want || r.Method != http.MethodPost {
			t.Errorf("%s %s, want POST %s", r.Method, body, want)
		}
		if r.Header.Get("Authorization") != "Bearer s3cret" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("header %v", r.Header)
		}
		io.WriteString(w, `{"profiles":{"ü\"x":{"nick":"ü"}}}`)
	})
	h := httpSource(t, url, func(o *HTTPOptions) { o.Header = http.Header{"Authorization": {"Bearer s3cret"}} })
	answers, err := load(t, h, "1", `ü"x`)
	if err != nil || show(answers) != `|{"nick":"ü"}` {
		t.Errorf("%s, %v", show(answers), err)
	}
}

func TestHTTPBadAnswers(t *testing.T) {
	gzipped := func(n int) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.WriteString(z, `{"profiles":{"1":{"a":"`)
		io.CopyN(z, filler{}, int64(n))
		z.Close()
		return b.Bytes()
	}(2 << 20)
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		kind    string
	}{
		{"5xx", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "{}", http.StatusServiceUnavailable) }, KindStatus},
		{"4xx with a good body", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"profiles":{}}`)
		}, KindStatus},
		{"redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, KindStatus},
		{"empty", func(http.ResponseWriter, *http.Request) {}, KindJSON},
		{"declared too long", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "200000000")
			io.WriteString(w, `{"profiles":{"1":{"a":"`)
		}, KindSize},
		{"200 MB of one profile", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"profiles":{"1":{"a":"`)
			io.CopyN(w, filler{}, 200<<20)
		}, KindSize},
		{"2 MB, zipped", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(gzipped)
		}, KindSize},
		{"cut off by the connection", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"profiles":{"1":{}`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, KindJSON},
		{"hangs", func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, "timeout"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := httpSource(t, serve(t, tt.handler), func(o *HTTPOptions) { o.Timeout, o.MaxAnswer = 2*time.Second, 1<<20 })
			if _, err := load(t, h, "1"); err == nil || kindOf(err) != tt.kind {
				t.Errorf("%v, want kind %s", err, tt.kind)
			}
		})
	}
}

// filler is text without an end.
type filler struct{}

func (filler) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestHTTPErrorsKeepSecrets(t *testing.T) {
	h := httpSource(t, "http://user:s3cret@127.0.0.1:1/?token=s3cret", nil)
	_, err := load(t, h, "1")
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v, want an error without the secret", err)
	}
	for _, url := range []string{"", "ftp://s3cret@host/", "s3cret", "http://s3cret:host:port/%zz"} {
		if _, err := NewHTTP(HTTPOptions{URL: url}); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v, want an error without the secret", url, err)
		}
	}
}

// The cache before a service that gives another bad answer each time: none of it is
// cached, none is passed on, and once the service is well everything is there.
func TestBadAnswersAreNeitherCachedNorPassedOn(t *testing.T) {
	answers := make(chan string, 100)
	for _, bad := range []string{`<html>`, `[]`, `{"profiles":{"a":{"evil":1}`, `{"profiles":{"a":{"evil":1},"a":{"evil":1}}}`,
		`{"profiles":{"a":{"evil":1},"stranger":{}}}`, `{"profiles":{"a":"evil"}}`} {
		answers <- bad
	}
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		select {
		case bad := <-answers:
			io.WriteString(w, bad)
		default:
			io.WriteString(w, `{"profiles":{"a":{"nick":"n-a"}}}`)
		}
	})
	c := start(t, Options{Retry: time.Millisecond, Deadline: 5 * time.Second}, httpSource(t, url, nil))
	testkit.Eventually(t, 20*time.Second, func() error {
		json, missing := get(t, c, "a")
		if strings.Contains(json, "evil") {
			t.Fatalf("passed on %s", json)
		}
		if _, cached := c.store.get(c.store.key("stranger"), "stranger"); cached {
			t.Fatal("a stranger is cached")
		}
		if missing != 0 {
			return errors.New("missing")
		}
		return nil
	})
	if len(answers) != 0 {
		t.Errorf("%d bad answers were not used", len(answers))
	}
}

func TestHTTPKeepsConnections(t *testing.T) {
	remotes := make(map[string]bool)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		remotes[r.RemoteAddr] = true
		var ask struct{ Members []string }
		json.NewDecoder(r.Body).Decode(&ask)
		json.NewEncoder(w).Encode(map[string]any{"profiles": nicks(ask.Members)})
	})
	h := httpSource(t, url, nil)
	for n := range 20 {
		if _, err := load(t, h, fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
	}
	if len(remotes) != 1 {
		t.Errorf("%d connections for 20 calls, want 1", len(remotes))
	}
}

func TestHTTPContext(t *testing.T) {
	h := httpSource(t, serve(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Load(ctx, []string{"1"}, make([]Answer, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
}

// TestCurrentURLAndHeader: each request has the URL and the header of its moment.
func TestCurrentURLAndHeader(t *testing.T) {
	var seen []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.URL.Path+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Content-Type"))
		_, _ = w.Write([]byte(`{"profiles":{}}`))
	}))
	defer service.Close()
	var turn atomic.Int32
	h, err := NewHTTP(HTTPOptions{URL: service.URL, Current: func() (string, http.Header) {
		token := []string{"old", "new"}[turn.Load()]
		return service.URL + "/" + token, http.Header{"Authorization": {token}}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for range 2 {
		if err := h.Load(t.Context(), []string{"a"}, make([]Answer, 1)); err != nil {
			t.Fatal(err)
		}
		turn.Store(1)
	}
	if len(seen) != 2 || seen[0] != "/old old application/json" || seen[1] != "/new new application/json" {
		t.Errorf("the service got %q", seen)
	}
}
