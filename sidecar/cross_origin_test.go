package sidecar

import (
	"net/http"
	"strings"
	"testing"
)

// TestCheckOrigin: pages of other sites and rebound names can't change anything,
// however the browser tells where the request comes from; clients that are no
// browsers can.
func TestCheckOrigin(t *testing.T) {
	h := CheckHost(nil, CheckOrigin(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })))
	const own = "http://127.0.0.1:8971/rooms"
	for name, c := range map[string]struct {
		method, url string
		header      []string
		status      int
		code        string
	}{
		"curl":                      {"POST", own, nil, 204, ""},
		"the page itself":           {"POST", own, []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://127.0.0.1:8971"}, 204, ""},
		"the page, older browser":   {"DELETE", own, []string{"Origin", "http://127.0.0.1:8971"}, 204, ""},
		"another site":              {"POST", own, []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, 403, "cross_origin"},
		"another site, older":       {"POST", own, []string{"Origin", "https://evil.example"}, 403, "cross_origin"},
		"another port of this host": {"POST", own, []string{"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:3000"}, 403, "cross_origin"},
		"a page without an origin":  {"DELETE", own, []string{"Origin", "null"}, 403, "cross_origin"},
		"a rebound name":            {"POST", "http://evil.example:8971/rooms", []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://evil.example:8971"}, 421, "wrong_host"},
		"a rebound name that reads": {"GET", "http://evil.example:8971/status", []string{"Sec-Fetch-Site", "same-origin"}, 421, "wrong_host"},
		"a link from another site":  {"GET", own, []string{"Sec-Fetch-Site", "cross-site"}, 204, ""},
	} {
		rec := ask(t, h, c.method, c.url, c.header...)
		if rec.Code != c.status || !strings.Contains(rec.Body.String(), c.code) {
			t.Errorf("%s: %d %s, want %d %s", name, rec.Code, rec.Body, c.status, c.code)
		}
	}
}
