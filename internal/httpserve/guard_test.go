package httpserve

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
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

// TestCheckLocal: both ends of the connection have to be on this machine, and the name a
// loopback one.
func TestCheckLocal(t *testing.T) {
	h := CheckLocal(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }))
	tcp := func(addr string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr)) }
	for name, c := range map[string]struct {
		from   string
		to     net.Addr
		host   string
		status int
	}{
		"loopback":                     {"127.0.0.1:9", tcp("127.0.0.1:8974"), "127.0.0.1:8974", 204},
		"loopback by name, IPv6":       {"[::1]:9", tcp("[::1]:8974"), "localhost", 204},
		"a socket":                     {"@", &net.UnixAddr{Name: "/run/x"}, "localhost", 204},
		"another machine":              {"192.0.2.1:9", tcp("192.0.2.2:8974"), "localhost", 403},
		"another machine, mapped":      {"[::ffff:192.0.2.1]:9", tcp("192.0.2.2:8974"), "localhost", 403},
		"a proxy to the pod's address": {"127.0.0.6:9", tcp("192.0.2.2:8974"), "localhost", 403},
		"a rebound name":               {"127.0.0.1:9", tcp("127.0.0.1:8974"), "evil.example:8974", 421},
		"no connection known":          {"127.0.0.1:9", nil, "localhost", 403},
	} {
		r := httptest.NewRequest("GET", "http://"+c.host+"/config", nil)
		r.RemoteAddr = c.from
		if c.to != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, c.to))
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code != c.status {
			t.Errorf("%s: %d %s, want %d", name, rec.Code, rec.Body, c.status)
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
