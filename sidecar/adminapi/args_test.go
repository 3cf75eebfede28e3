package adminapi

import (
	"slices"
	"strings"
	"testing"
)

// TestRoutesTakeTheirArgumentsAlone: each route of the admin port is in the table of arguments, or is known to read its own.
func TestRoutesTakeTheirArgumentsAlone(t *testing.T) {
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	own := []string{"GET /", "GET /assets/{name}", "GET /debug/pprof/", "GET /debug/pprof/{name}", "GET /debug/pprof/cmdline", "GET /debug/pprof/profile", "GET /debug/pprof/symbol",
		"GET /debug/pprof/trace", "GET /metrics", "GET /livez", "GET /readyz", "GET /startupz"}
	in := doc.Operations("admin")
	for op := range in {
		if _, listed := argsOf[op]; !listed && !slices.Contains(own, op) {
			t.Errorf("%s takes any argument", op)
		}
	}
	for op := range argsOf {
		if !in[op] {
			t.Errorf("%s is no route", op)
		}
	}
	st := &Status{Readiness: NewReadiness(nil, someBoards), Reader: newEnv().reader()}
	admin := Routed(New(st, st.Readiness, nil))
	for target, named := range map[string]string{
		"/status?state=":                               "state",
		"/status?match":                                "match",
		"/status?limit=1&limit=2":                      "limit",
		"/status?start=1&state=open&start=1":           "start",
		"/status/local?limit=1":                        "limit",
		"/boards/local/top?limit=":                     "limit",
		"/boards/local/top?limit=3&limit=3":            "limit",
		"/boards/local/top?start=3":                    "start",
		"/openapi.yaml?x":                              "x",
		"/status?expect=state=ready&lim%69t=1":         "lim%69t",
		"/boards/local/top?" + strings.Repeat("y", 50): strings.Repeat("y", 40),
	} {
		if rec := ask(t, admin, "GET", target); rec.Code != 400 || !strings.Contains(rec.Body.String(), `"argument":"`+named+`"`) {
			t.Errorf("%s: %d %s, want 400 that names %s", target, rec.Code, rec.Body, named)
		}
	}
	for _, target := range []string{"/status?expect=state=ready&expect=boards_matched=3&limit=0", "/boards/local/top?limit=3", "/boards/local/top?", "/status?&limit=1&", "/readyz?verbose"} {
		if rec := ask(t, admin, "GET", target); rec.Code == 400 {
			t.Errorf("%s: %d %s", target, rec.Code, rec.Body)
		}
	}
}
