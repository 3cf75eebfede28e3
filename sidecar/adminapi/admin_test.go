package adminapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/health"
	"rankcache/internal/testkit/fixture"
	"rankcache/sidecar"
)

func TestAdminTop(t *testing.T) {
	env := newEnv()
	st := &Status{Readiness: NewReadiness(nil, nil), Reader: env.reader()}
	admin := New(st, st.Readiness, nil)
	for path, want := range map[string]struct {
		status int
		part   string
	}{
		"/boards/local/top":           {200, `"source":"local","seq":917,"total":57000`},
		"/boards/local/top?limit=2":   {200, `"limit":2,"entries":[{"rank":1,"member":"m000000","score":974000,"profile":`},
		"/boards/hot/top":             {200, `"source":"hot"`},
		"/boards/filling/top":         {200, `"source":"redis"`},
		"/boards/shut/top":            {403, `"code":"blocked"`},
		"/boards/a%20b/top":           {400, `"argument":"board"`},
		"/boards/local/top?limit=0":   {400, `"argument":"limit"`},
		"/boards/local/top?limit=501": {400, `"argument":"limit"`},
		"/boards/local/top?limit=x":   {400, `"argument":"limit"`},
	} {
		rec := ask(t, admin, "GET", path)
		if rec.Code != want.status || !strings.Contains(rec.Body.String(), want.part) {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
		if rec.Code == 200 && (rec.Header().Get("Rankcache-Age-Ms") == "" || rec.Header().Get("Rankcache-Source") == "") {
			t.Errorf("%s: header %v, want age and source", path, rec.Header())
		}
	}
}

// TestOperatorsDoNotMakeBoardsHot: a page that is looked at asks once a second.
func TestOperatorsDoNotMakeBoardsHot(t *testing.T) {
	env := newEnv()
	st := &Status{Readiness: NewReadiness(nil, nil), Reader: env.reader()}
	admin := New(st, st.Readiness, nil)
	for _, path := range []string{"/boards/hot/top", "/boards/filling/top", "/status/hot"} {
		if rec := ask(t, admin, "GET", path); rec.Code != 200 {
			t.Fatalf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
	if n := env.Hot.Reads.Load(); n != 0 {
		t.Errorf("%d reads of operators count as the app's", n)
	}
}

// TestRouted: what no pattern takes is a encode.Problem on every listener, and what one
// takes is not touched.
func TestRouted(t *testing.T) {
	st := &Status{Readiness: NewReadiness(nil, someBoards), Reader: newEnv().reader()}
	admin := Routed(New(st, st.Readiness, http.NotFoundHandler()))
	for _, c := range []struct {
		h      http.Handler
		method string
		path   string
		status int
		allow  string
	}{
		{admin, "GET", "/nothing", 404, ""},
		{admin, "POST", "/status", 405, "GET, HEAD"},
		{admin, "GET", "/openapi.yaml", 200, ""},
		{admin, "GET", "/debug/pprof/", 200, ""},
		{admin, "GET", "/debug/pprof/goroutine", 200, ""},
		{admin, "GET", "/debug/pprof/nothing", 404, ""},
		{admin, "GET", "/debug/pprof/goroutine/1", 404, ""},
		{admin, "GET", "/debug/pprof/cmdline", 404, ""},
		{Health(st.Readiness, nil), "PUT", "/readyz", 405, "GET, HEAD"},
		{Health(st.Readiness, nil), "GET", "/status", 404, ""},
	} {
		rec := ask(t, c.h, c.method, c.path)
		if rec.Code != c.status || rec.Header().Get("Allow") != c.allow {
			t.Errorf("%s %s: %d, Allow %q: %s", c.method, c.path, rec.Code, rec.Header().Get("Allow"), rec.Body)
		}
	}
}

func TestStatusTellsDependencies(t *testing.T) {
	st := &Status{Readiness: NewReadiness(nil, nil), Reader: newEnv().reader(), Dependencies: health.Needs{"redis": health.NewNeed(time.Minute)}}
	admin := New(st, st.Readiness, nil)
	st.Dependencies["redis"].Observe(time.Millisecond, nil)
	for path, want := range map[string]int{"/status": 200, "/status?expect=dependencies.redis.state=ok": 200, "/status?expect=dependencies.kafka.state=ok": 503} {
		if rec := ask(t, admin, "GET", path); rec.Code != want || !strings.Contains(rec.Body.String(), `"dependencies":{"redis":{"state":"ok"`) {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
}

// TestStatusOfSplitBoard has its shards, and the progress of the one that is worst off.
func TestStatusOfSplitBoard(t *testing.T) {
	followed := []rankcache.BoardStatus{{Board: "gift:7.s1", State: rankcache.StateReplaying, Members: 3}, {Board: "gift:7.s0", State: rankcache.StateOpen, Members: 900}, {Board: "gift:70.s2"}}
	r, err := sidecar.NewReader(sidecar.Config{Tiers: fixture.Tiers("classes:\n  - {name: gift, board: \"gift:{zone}\", period: none, shards: 3}\n"), Origin: newEnv().Origin}, nil)
	if err != nil {
		t.Fatal(err)
	}
	st := &Status{Readiness: NewReadiness(nil, func() []rankcache.BoardStatus { return followed }), Reader: r}
	admin := New(st, st.Readiness, nil)
	look := func() (got boardStatus) {
		rec := ask(t, admin, "GET", "/status/gift:7")
		if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != 200 {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
		return got
	}
	if got := look(); len(got.Shards) != 2 || got.Shards[0].Board != "gift:7.s0" || got.Replay == nil || got.Replay.Board != "gift:7.s1" {
		t.Errorf("%+v", got)
	}
	followed[0].State = rankcache.StateOpen
	if got := look(); got.Replay.State != rankcache.StateOpen {
		t.Errorf("%+v", got.Replay)
	}
}
