package app

import (
	"bufio"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLivePage watches a super-hot board and a small one while gifts come, through the whole
// path, until the sidecar is stopped.
func TestLivePage(t *testing.T) {
	h := newFixture(t)
	h.give(t, h.star, 5)
	h.give(t, h.small, 3)
	s := h.serve(t, "--rpc", "127.0.0.1:0", "--live-interval", "5ms")
	s.WaitReady(time.Minute)
	star, small := watchPage(t, s.URL("rpc", "/v1/boards/"+string(h.star)+"/live")), watchPage(t, s.URL("rpc", "/v1/boards/"+string(h.small)+"/live"))
	for _, page := range []*pageLines{star, small} {
		page.until(t, "event: page")
	}
	h.give(t, h.star, 6)
	h.give(t, h.small, 4)
	for _, page := range []*pageLines{star, small} {
		if line := page.until(t, `"member":"m`); !strings.Contains(line, `"len":`) && !strings.Contains(line, `"entries":`) {
			t.Errorf("an event with %s", line)
		}
	}
	s.Signal(syscall.SIGTERM)
	for _, page := range []*pageLines{star, small} {
		page.until(t, `"draining"`)
	}
}

// pageLines is the lines of a live page.
type pageLines struct{ *bufio.Scanner }

func watchPage(t *testing.T, url string) *pageLines {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return &pageLines{lines}
}

// until returns the next line that has a text.
func (l *pageLines) until(t *testing.T, text string) string {
	t.Helper()
	for l.Scan() {
		if strings.Contains(l.Text(), text) {
			return l.Text()
		}
	}
	t.Fatalf("the stream ended before %q: %v", text, l.Err())
	return ""
}
