package httpserve

import (
	"net/http"
	"net/http/httptest"
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
		rec := ask(h, c.method, c.url, c.header...)
		if rec.Code != c.status || !strings.Contains(rec.Body.String(), c.code) {
			t.Errorf("%s: %d %s, want %d %s", name, rec.Code, rec.Body, c.status, c.code)
		}
	}
}

// TestRequireToken: the scheme counts in any case, and a token without one does not.
func TestRequireToken(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	for _, c := range []struct {
		token, header string
		status        int
	}{
		{"secret", "Bearer secret", 204}, {"secret", "bearer secret", 204}, {"secret", "BEARER  secret", 204},
		{"secret", "secret", 401}, {"secret", "Basic secret", 401}, {"secret", "Bearersecret", 401},
		{"secret", "Bearer secre", 401}, {"secret", "", 401}, {"secret", "Bearer ", 401},
		{"", "Bearer ", 401}, {"", "Bearer", 401}, {"", "", 401},
	} {
		rec := ask(RequireToken("the token", c.token, ok), "DELETE", "/profiles/a", "Authorization", c.header)
		if rec.Code != c.status || strings.Contains(rec.Body.String(), "secre") {
			t.Errorf("token %q, header %q: %d %s", c.token, c.header, rec.Code, rec.Body)
		}
		if asked := rec.Header().Get("WWW-Authenticate"); (asked == "Bearer") != (c.status == 401) {
			t.Errorf("header %q: WWW-Authenticate %q", c.header, asked)
		}
	}
}

func ask(h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec
}
