package adminapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit/apitest"
	"rankcache/internal/testkit/fixture"
)

// settling is what a test sets to settled.
type settling struct{ open atomic.Bool }

func (g *settling) settled() (bool, string) {
	if g.open.Load() {
		return true, "2 of 2 boards settled"
	}
	return false, "1 of 2 boards settled"
}

func someBoards() []rankcache.BoardStatus {
	return []rankcache.BoardStatus{
		{Board: "local", State: rankcache.StateOpen, Have: 917, Want: 917, Members: 57000, Proof: rankcache.ProofStatus{
			State: fixture.Written.StateAt(917), Origin: fixture.Written.StateAt(920), OriginAt: fixture.Published,
			Proved: fixture.Written.StateAt(910), ProvedAt: fixture.Published.Add(-time.Second)}},
		{Board: "filling", State: rankcache.StateReplaying, Reason: "reading the log", Have: 300, Want: 900, Rate: 1e5, ETA: 6 * time.Second},
		{Board: "waiting", State: rankcache.StateWaiting},
	}
}

func ask(t testing.TB, h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	if strings.HasPrefix(path, "http") { // of a handler that stands in for ours
		return rec
	}
	inDocument(t, apitest.Exchange{Method: method, Target: path, RequestHeader: req.Header,
		Status: rec.Code, Header: rec.Header(), Body: rec.Body.String()})
	return rec
}

// TestProbes walks through the life of a process.
func TestProbes(t *testing.T) {
	gate := new(settling)
	r := NewReadiness(gate.settled, someBoards)
	var fault atomic.Pointer[string]
	r.Fault = func() error {
		if why := fault.Load(); why != nil {
			return errors.New(*why)
		}
		return nil
	}
	h := Health(r, nil)
	expect := func(when string, live, ready, startup int, state State, reason string) {
		t.Helper()
		for path, want := range map[string]int{"/livez": live, "/readyz": ready, "/startupz": startup} {
			rec := ask(t, h, "GET", path)
			var body probeBody
			if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil || rec.Code != want {
				t.Errorf("%s: %s is %d, want %d: %s", when, path, rec.Code, want, rec.Body)
			}
			if path != "/livez" && (body.State != state || body.Reason != reason) {
				t.Errorf("%s: %s answers %s", when, path, rec.Body)
			}
		}
	}
	expect("at start", 200, 503, 503, StateStarting, "1 of 2 boards settled")
	gate.open.Store(true)
	fault.Store(new("wrong_clock: behind"))
	expect("with a fault", 200, 503, 503, StateStarting, "wrong_clock: behind")
	fault.Store(nil)
	expect("settled", 200, 200, 200, StateReady, "2 of 2 boards settled")
	gate.open.Store(false)
	expect("when the boards are not settled any more", 200, 200, 200, StateReady, "2 of 2 boards settled")
	r.Partly = func() error { return errors.New("posts of class gift are refused") }
	expect("a part of its work", 200, 200, 200, StateReady, "ready, but posts of class gift are refused")
	fault.Store(new("wrong_clock: ahead"))
	expect("with a fault later", 200, 503, 200, StateUnready, "wrong_clock: ahead")
	fault.Store(nil)
	r.Partly = nil
	expect("right again", 200, 200, 200, StateReady, "2 of 2 boards settled")
	r.Stop("SIGTERM")
	r.Stop("SIGTERM again")
	expect("when the process ends", 200, 503, 200, StateStopping, "SIGTERM")
}

func TestStopBeforeReady(t *testing.T) {
	gate := new(settling)
	r := NewReadiness(gate.settled, nil)
	r.Stop("SIGTERM")
	gate.open.Store(true)
	if now := r.Now(); now.State != StateStopping || now.Started {
		t.Errorf("%+v", now)
	}
	if now := NewReadiness(nil, nil).Now(); now.State != StateReady {
		t.Errorf("with nothing to wait for: %+v", now)
	}
}

func TestProbeBody(t *testing.T) {
	h := Health(NewReadiness(new(settling).settled, someBoards), nil)
	var body struct {
		Open   int `json:"boards_open"`
		Total  int `json:"boards_total"`
		Boards []struct {
			Board string
			Want  *uint64
			ETA   *float64 `json:"eta_s"`
		}
	}
	if err := json.Unmarshal(ask(t, h, "GET", "/readyz").Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}
	if body.Open != 1 || body.Total != 3 || len(body.Boards) != 2 || *body.Boards[0].ETA != 6 || body.Boards[1].Want != nil {
		t.Errorf("%+v", body)
	}
	if rec := ask(t, h, "POST", "/readyz"); rec.Code != 405 {
		t.Errorf("POST: %d", rec.Code)
	}
	if rec := ask(t, h, "HEAD", "/readyz"); rec.Code != 503 {
		t.Errorf("HEAD: %d", rec.Code)
	}
}

func TestStatus(t *testing.T) {
	env := newEnv()
	st := &Status{Readiness: NewReadiness(nil, someBoards), Reader: env.reader(), Version: "v1.2.3", Started: time.Now(),
		Sections: map[string]func() any{"kafka": func() any { return map[string]int{"lag": 12345678} }}}
	admin := New(st, st.Readiness, nil)
	for path, want := range map[string]struct {
		status int
		part   string
	}{
		"/status":                           {200, `"tiers":{"blocked":1,"hot":1,"super-hot":3}`},
		"/status?expect=state=ready":        {200, `"version":"v1.2.3"`},
		"/status?expect=state=starting":     {503, `"state":"ready"`},
		"/status?expect=kafka.lag=12345678": {200, ``},
		"/status?expect=boards.2.state=open&expect=boards.0.board=filling": {200, `"boards_by_state":{"checking":0,"given-up":0,"lost":0,"open":1,"replaying":1,"snapshot":0,"stale":0,"waiting":1}`},
		"/status?expect=boards.9.board=filling":                            {503, ``},
		"/status?limit=0&expect=boards_open=1&expect=boards_total=3":       {200, `"boards":[],`},
		"/status?state=waiting&expect=boards_matched=1":                    {200, `"boards":[{"board":"waiting"`},
		"/status?match=*ing&start=1&limit=1":                               {200, `"boards":[{"board":"waiting"`},
		"/status?start=9223372036854775807":                                {200, `"boards":[],"boards_by_state"`},
		"/status?limit=501":                                                {400, `"argument":"limit"`},
		"/status?start=-1":                                                 {400, `"argument":"start"`},
		"/status?state=asleep":                                             {400, `"argument":"state"`},
		"/status?match=%5B":                                                {400, `"argument":"match"`},
		"/status?expect=nonsense":                                          {400, `"argument":"expect"`},
		"/status/local":                                                    {200, `"tier":"super-hot","source":"local","seq":917,"total":57000`},
		"/status/filling":                                                  {200, `"tier":"small","source":"redis","seq":12`},
		"/status/shut":                                                     {200, `"tier":"blocked","total":0,"age_ms":0,"top":[],"error":"blocked"`},
		"/status/a%20b":                                                    {400, `"argument":"board"`},
		"/livez":                                                           {200, ``},
		"/debug/pprof/cmdline":                                             {404, `"unknown_path"`},
	} {
		rec := ask(t, admin, "GET", path)
		if rec.Code != want.status || !strings.Contains(rec.Body.String(), want.part) {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
}

// TestBothStates: a board's status has the state of the copy, that of Redis, and the
// latest at which they were equal; of a board that is not followed what its answer shows.
func TestBothStates(t *testing.T) {
	st := &Status{Readiness: NewReadiness(nil, someBoards), Reader: newEnv().reader(), Started: time.Now()}
	admin := New(st, st.Readiness, nil)
	at := func(seq uint64) string { return fixture.Written.StateAt(seq).String() }
	for path, want := range map[string]string{
		"/status/local": `"state":"` + at(917) + `","origin_state":"` + at(920) + `","origin_state_at":"2026-05-04T20:00:00.123Z",` +
			`"proved_state":"` + at(910) + `","proved_at":"2026-05-04T19:59:59.123Z"}`,
		"/status/hot":     `"state":"` + at(33) + `"}`,
		"/status/any":     `"origin_state":"` + at(12) + `","origin_state_at":"2026-05-04T20:00:00.123Z"}`,
		"/status/waiting": `"members":0},"origin_state":"` + at(12) + `","origin_state_at":"2026-05-04T20:00:00.123Z"}`,
		"/status/shut":    `"error":"blocked"}`,
	} {
		if body := strings.TrimSpace(ask(t, admin, "GET", path).Body.String()); !strings.HasSuffix(body, want) {
			t.Errorf("%s ends with\n%.300s\nwant\n%s", path, body[max(0, len(body)-300):], want)
		}
	}
	if got := ask(t, admin, "GET", "/boards/local/top").Header().Get("Rankcache-State"); got != at(917) {
		t.Errorf("state of a top %q", got)
	}
}
