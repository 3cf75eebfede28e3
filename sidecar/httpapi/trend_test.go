package httpapi

import (
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"rankcache"
)

// trendEnv is a class whose half hour before the running one had three members and is closed.
func trendEnv(t *testing.T) (*classEnv, *running) {
	env := newClassEnv(t)
	env.Origin.N.Store(3)
	env.Origin.Closed.Store(true)
	env.log = slog.New(slog.DiscardHandler)
	return env, env.start(t)
}

const halfHour = "/v1/classes/gift-half-hour"

var previousRanks = regexp.MustCompile(`"member":"(m[0-9]*)",[^{}]*?"previous_rank":([0-9]+|null)`)

// ranksBefore returns member and previous rank of each row.
func ranksBefore(body string) string {
	var rows []string
	for _, row := range previousRanks.FindAllStringSubmatch(body, -1) {
		rows = append(rows, strings.TrimLeft(row[1], "m0")+":"+row[2])
	}
	return strings.Join(rows, " ")
}

// TestTrend asks Redis once for what it does not know of the period before, which is over.
func TestTrend(t *testing.T) {
	env, s := trendEnv(t)
	for _, c := range []struct {
		path  string
		calls int64
		want  string // :1 is member 0
	}{
		{halfHour + "/top?zone=7&limit=5&trend=1", 1, ":1 1:2 2:3 3:null 4:null"},
		{halfHour + "/top?zone=7&limit=5&trend=1", 0, ":1 1:2 2:3 3:null 4:null"},
		{halfHour + "/top?zone=7&limit=2&trend=1&start=1&profiles=1", 0, "1:2 2:3"},
		{halfHour + "/top?zone=7&limit=2&trend=1&me=m000001", 0, ":1 1:2 1:2"},
		{halfHour + "/top?zone=7&limit=2&trend=1&me=m000007", 1, ":1 1:2 7:null"},
		{halfHour + "/top?zone=7&limit=2&trend=1&me=m000007", 0, ":1 1:2 7:null"},
		{halfHour + "/top?zone=7&limit=2&me=m000007", 0, ""},
		{halfHour + "/top?zone=7&limit=1&trend=1&me=m000010&around=1&gap=1", 1, ":1 10:null 9:null 10:null 11:null"},
		{halfHour + "/top?zone=7&limit=2&trend=1&rank_mode=competition&percentile=1&me=m000001", 1, ":1 1:2 1:2"},
		{halfHour + "/top?zone=7&limit=2&trend=1&rank_mode=competition&percentile=1&me=m000001", 0, ":1 1:2 1:2"},
		{halfHour + "/top?zone=7&limit=1&trend=1&order=asc", 1, "599:null"},
		{halfHour + "/members/m000002?zone=7&trend=1", 0, "2:3"},
		{halfHour + "/members/m000002?zone=7&trend=1&around=1", 0, "2:3 1:2 2:3 3:null"},
		{halfHour + "/members/m000002?zone=7&trend=1&percentile=1", 0, "2:3"},
		{halfHour + "/top?zone=8&limit=5&trend=1", 2, ":1 1:2 2:3"}, // a board of Redis, and the one before
		{halfHour + "/top?zone=8&limit=5&trend=1", 1, ":1 1:2 2:3"},
		{halfHour + "/top?zone=7&limit=2&trend=1&at=20261122-36", 0, ":1 1:2"}, // of the local board of the running one
		{halfHour + "/members/m000500?zone=7&trend=1&at=20261122-36&rank_mode=dense", 0, "500:501"},
	} {
		env.Origin.Calls.Store(0)
		a := s.do(t, "GET", c.path, "")
		if got := ranksBefore(a.body); a.status != 200 || got != c.want || env.Origin.Calls.Load() != c.calls {
			t.Errorf("%s: %d %q after %d calls, want %q after %d\n%s", c.path, a.status, got, env.Origin.Calls.Load(), c.want, c.calls, a.body)
		}
	}
}

// TestTrendBeforeClosing: ranks are kept for two seconds until Redis tells that the board is
// closed, however long ago its period ended: an outage may have held up its commands.
func TestTrendBeforeClosing(t *testing.T) {
	env, s := trendEnv(t)
	const top = halfHour + "/top?zone=7&limit=4&trend=1"
	for _, c := range []struct {
		now    string
		n      int64 // members in Redis
		closed bool
		path   string
		calls  int64
		want   string
	}{
		{"17:00:00", 2, false, top + "&me=m000003", 1, ":1 1:2 2:null 3:null 3:null"},
		{"17:00:01.999", 3, false, top + "&me=m000003", 0, ":1 1:2 2:null 3:null 3:null"},
		{"17:00:01.999", 3, false, top, 0, ":1 1:2 2:null 3:null"},
		{"17:00:02", 3, false, top, 1, ":1 1:2 2:3 3:null"}, // a page that is encoded once for all
		{"17:00:03.999", 4, false, top, 0, ":1 1:2 2:3 3:null"},
		{"17:00:04", 4, false, top, 1, ":1 1:2 2:3 3:4"},
		{"17:20:30", 3, false, top, 1, ":1 1:2 2:3 3:null"}, // long after the end
		{"17:20:32", 4, false, top, 1, ":1 1:2 2:3 3:4"},
		{"17:20:33", 5, true, top + "&me=m000004", 1, ":1 1:2 2:3 3:4 4:5"},
		{"17:20:35", 5, true, top, 1, ":1 1:2 2:3 3:4"}, // what was kept before is asked for again
		{"17:29:59", 6, true, top, 0, ":1 1:2 2:3 3:4"},
		{"17:29:59", 6, true, top + "&me=m000004", 0, ":1 1:2 2:3 3:4 4:5"},
	} {
		env.set("2026-11-22T" + c.now + "+08:00")
		env.Origin.N.Store(c.n)
		env.Origin.Closed.Store(c.closed)
		env.Origin.Calls.Store(0)
		if a := s.do(t, "GET", c.path, ""); ranksBefore(a.body) != c.want || env.Origin.Calls.Load() != c.calls {
			t.Errorf("at %s: %d calls, want %d, %q, want %q, of %s", c.now, env.Origin.Calls.Load(), c.calls, ranksBefore(a.body), c.want, c.path)
		}
	}
}

// TestTrendWithoutRedis: the page does not need it, and is right again when it is back.
func TestTrendWithoutRedis(t *testing.T) {
	env, s := trendEnv(t)
	const path = halfHour + "/top?zone=7&limit=1&trend=1&me=m000000"
	env.Origin.FailWith(rankcache.ErrUnavailable)
	for range 2 {
		if a := s.do(t, "GET", path, ""); a.status != 200 || strings.Count(a.body, `"trend_error":"origin_unavailable"`) != 2 || strings.Contains(a.body, "previous_rank") {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	env.Origin.FailWith(nil)
	if a := s.do(t, "GET", path, ""); ranksBefore(a.body) != ":1 :1" {
		t.Errorf("with Redis: %s", a.body)
	}
	const dense = halfHour + "/members/m000000?zone=7&trend=1&rank_mode=dense"
	if a := s.do(t, "GET", dense, ""); a.status != 200 || !strings.Contains(a.body, `"trend_error":"rank_mode_refused"`) {
		t.Errorf("%s: %d %s", dense, a.status, a.body)
	}
}

// TestTrendByBoard is that of the class whose board it is: the same ranks, which are kept once.
func TestTrendByBoard(t *testing.T) {
	env, s := trendEnv(t)
	const board = "/v1/boards/gift:7:20261122-35"
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", board + "/top?limit=4&trend=1&me=m000001&around=1", "", ":1 1:2 2:3 3:null 1:2 :1 1:2 2:3"},
		{"GET", board + "/top?limit=4&trend=1", "", ":1 1:2 2:3 3:null"},
		{"GET", board + "/top?limit=2", "", ""},
		{"GET", board + "/top?limit=2&trend=1&rank_mode=competition", "", ":1 1:2"},
		{"GET", board + "/members/m000002?trend=1", "", "2:3"},
		{"POST", board + "/members:batch?trend=1&sort=rank", `{"members":["m000002","m000009","m000000"]}`, ":1 2:3 9:null"},
		{"POST", "/v1/boards:batch", `{"boards":[{"board":"gift:7:20261122-35","limit":2,"trend":true,"me":"m000002"},{"board":"gift:7:20261122-35","limit":1},{"board":"gift:7:20261122-34","limit":1,"trend":true}]}`, ":1 1:2 2:3 :1"},
	} {
		a := s.do(t, c.method, c.path, c.body)
		if got := ranksBefore(a.body); a.status != 200 || got != c.want {
			t.Errorf("%s %s: %d %q, want %q\n%s", c.path, c.body, a.status, got, c.want, a.body)
		}
	}
	env.Origin.Calls.Store(0)
	if a := s.do(t, "GET", halfHour+"/top?zone=7&limit=4&trend=1", ""); ranksBefore(a.body) != ":1 1:2 2:3 3:null" || env.Origin.Calls.Load() != 0 {
		t.Errorf("by class, after %d calls: %s", env.Origin.Calls.Load(), a.body)
	}
	for body, want := range map[string]string{`{"boards":[{"board":"local"},{"board":"local","trend":true}]}`: "boards[1]: board local is of no class", `{"boards":[{"board":"local","trend":1}]}`: "trend"} {
		if a := s.do(t, "POST", "/v1/boards:batch", body); a.status != 400 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
}

// TestTrendRefusals: what has no period before has no trend.
func TestTrendRefusals(t *testing.T) {
	_, s := trendEnv(t)
	for path, status := range map[string]int{
		"/v1/boards/gift:7:20261122-35/top?trend=0":    200,
		"/v1/boards/local/top?trend=1":                 400,
		"/v1/boards/fans:7:88/members/m000001?trend=1": 400,
		"/v1/classes/fans/top?app=7&host=88&trend=1":   422,
		halfHour + "/top?zone=7&trend=2":               400,
		halfHour + "/top?zone=7&trend=1&trend=1":       400,
	} {
		a := s.do(t, "GET", path, "")
		if a.status != status || status == 422 && !strings.Contains(a.body, `"code":"trend_refused"`) {
			t.Errorf("%s: %d %s, want %d", path, a.status, a.body, status)
		}
	}
}
