package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sidecarSays serves one of the sidecar's own golden answers and notes what was
// asked.
type sidecarSays struct {
	status int
	file   string
	asked  string
}

func (s *sidecarSays) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked = r.URL.String()
	body, err := os.ReadFile("../../sidecar/httpapi/testdata/" + s.file)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Rankcache-Age-Ms", "7")
	w.WriteHeader(s.status)
	w.Write(body)
}

// ask sends one request to an app beside s and returns the answer.
func ask(t *testing.T, at, path string) (int, string) {
	t.Helper()
	a, err := newApp(at, "1_2_3")
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	a.handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
	body, err := io.ReadAll(rec.Body)
	if err != nil {
		t.Fatal(err)
	}
	return rec.Code, string(body)
}

func start(t *testing.T, s *sidecarSays) string {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

func TestPageShowsTheBoard(t *testing.T) {
	s := &sidecarSays{status: http.StatusOK, file: "top_me.json"}
	code, body := ask(t, start(t, s), "/?me=m50")
	if code != http.StatusOK || !strings.Contains(body, "<tr><td>1<td>") || !strings.Contains(body, "You are number") || !strings.Contains(body, "7 ms old") {
		t.Errorf("%d %s", code, body)
	}
	if want := "/v1/boards/1_2_3/top?limit=50&me=m50"; s.asked != want {
		t.Errorf("asked %s, want %s", s.asked, want)
	}
}

func TestPageOverASocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.sock")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(&sidecarSays{status: http.StatusOK, file: "top.json"})
	server.Listener.Close()
	server.Listener = ln
	server.Start()
	t.Cleanup(server.Close)
	if code, body := ask(t, "unix:"+path, "/"); code != http.StatusOK || strings.Contains(body, "You are") {
		t.Errorf("%d %s", code, body)
	}
}

func TestJSONPassesTheAnswerOn(t *testing.T) {
	for file, status := range map[string]int{"top.json": http.StatusOK, "blocked.json": http.StatusForbidden} {
		want, err := os.ReadFile("../../sidecar/httpapi/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if code, body := ask(t, start(t, &sidecarSays{status: status, file: file}), "/board.json"); code != status || body != string(want) {
			t.Errorf("%s: %d %s", file, code, body)
		}
	}
}

func TestNoBoardIsSaidAndNotAFault(t *testing.T) {
	if code, body := ask(t, start(t, &sidecarSays{status: http.StatusForbidden, file: "blocked.json"}), "/"); code != http.StatusForbidden || !strings.Contains(body, "no board here") {
		t.Errorf("%d %s", code, body)
	}
	if code, body := ask(t, "unix:"+filepath.Join(t.TempDir(), "nobody"), "/"); code != http.StatusBadGateway || !strings.Contains(body, "being prepared") {
		t.Errorf("%d %s", code, body)
	}
}

// A member's name is foreign text.
func TestNamesAreEscaped(t *testing.T) {
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"entries":[{"rank":1,"member":"<script>","score":1000000}]}`)
	}))
	t.Cleanup(evil.Close)
	if _, body := ask(t, evil.URL, "/"); strings.Contains(body, "<script>") || !strings.Contains(body, "&lt;script&gt;<td>1000000") {
		t.Error(body)
	}
}

func TestBadAddressIsRefused(t *testing.T) {
	if _, err := newApp("localhost:8970", "b"); err == nil {
		t.Error("an address without a scheme is taken")
	}
}
