package app

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/testkit"
	"rankcache/internal/testkit/apitest"
	"rankcache/sidecar"
)

// TestForeignPageChangesNoScore: a page that comes from another port of this machine
// posts in each way that a browser allows without asking the writer first.
func TestForeignPageChangesNoScore(t *testing.T) {
	t.Parallel()
	testkit.Chromium(t) // before anything is started for it
	h := newFixture(t)
	h.give(t, h.small, 1)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<!doctype html><title>elsewhere</title><link rel=icon href=data:,>")
	}))
	defer page.Close()
	p := openTab(t, page.URL)
	for _, contentType := range []string{"text/plain", "application/x-www-form-urlencoded", "application/json"} {
		p.value(fmt.Sprintf(`window.sent = false; fetch(%q, {method: 'POST', mode: 'no-cors', body: new Blob([%q], {type: %q})})
			.catch(() => {}).finally(() => { window.sent = true }); 0`, h.writer.URL("scores", "/v1/scores"), h.theft(contentType), contentType))
		p.await("posted as "+contentType, `window.sent === true`)
	}
	if score, err := h.redis(t).ZScore(t.Context(), string(h.small), "thief").Result(); err != redis.Nil {
		t.Errorf("the page's member has score %v, %v", score, err)
	}
}

// theft is a command of the page.
func (h *fixture) theft(order string) string {
	return fmt.Sprintf(`{"order":"theft-%s","board":%q,"member":"thief","op":"incr","delta":1000}`, order, h.small)
}

// awaitWriter waits until the writer takes scores: before, it refuses whatever comes.
func (h *fixture) awaitWriter(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, time.Minute, func() error {
		if code, body := h.writer.Get("scores", "/v1/scores"); code == http.StatusServiceUnavailable {
			return fmt.Errorf("the writer: %d %s", code, body)
		}
		return nil
	})
}

// TestWriteToken: with a token set, nothing else changes a score.
func TestWriteToken(t *testing.T) {
	t.Parallel()
	doc, err := apitest.Load(sidecar.OpenAPI())
	must(t, err)
	h := newFixture(t, "--write-token", "hush-write")
	h.awaitWriter(t)
	for _, c := range []struct {
		authorization, contentType, site string
		status                           int
	}{
		{"", "application/json", "", 401}, {"hush-write", "application/json", "", 401}, {"Bearer hush", "application/json", "", 401},
		{"Bearer hush-write", "text/plain", "", 415}, {"Bearer hush-write", "application/json", "cross-site", 403},
		{"bearer hush-write", "application/json", "", 200},
	} {
		req, err := http.NewRequest("POST", h.writer.URL("scores", "/v1/scores"), strings.NewReader(h.theft("no theft")))
		must(t, err)
		req.Header = http.Header{"Authorization": {c.authorization}, "Content-Type": {c.contentType}, "Sec-Fetch-Site": {c.site}}
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		body, err := io.ReadAll(resp.Body)
		must(t, err)
		resp.Body.Close()
		asked := resp.Header.Get("WWW-Authenticate") == "Bearer"
		if resp.StatusCode != c.status || strings.Contains(string(body), "hush") || asked != (c.status == 401) {
			t.Errorf("%+v: %s %v %s", c, resp.Status, resp.Header, body)
		}
		if c.contentType == "application/json" { // the document knows no other
			must(t, doc.Check(apitest.Exchange{Method: "POST", Target: "/v1/scores", RequestHeader: req.Header, RequestBody: h.theft("no theft"),
				Status: resp.StatusCode, Header: resp.Header, Body: string(body)}))
		}
	}
	if score, err := h.redis(t).ZScore(t.Context(), string(h.small), "thief").Result(); err != nil || score != 1000 {
		t.Errorf("score %v, %v; want the one that had the token", score, err)
	}
	if strings.Contains(h.writer.Log(), "hush") {
		t.Error("the log tells the token")
	}
}
