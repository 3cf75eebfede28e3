package httpapi

import (
	"log/slog"
	"strings"
	"testing"

	"rankcache/rooms"
)

// seasonFile has the seasons s1 and s2 that follow each other, and s3 behind a gap of a day.
const seasonFile = `
classes:
  - name: ladder
    board: "ladder:{zone}:{period}"
    tz: Asia/Shanghai
    keep: 48h
    seasons:
    - {tag: s1, from: 2026-11-01T05:00:00+08:00, to: 2026-11-10T05:00:00+08:00}
    - {tag: s2, from: 2026-11-10T05:00:00+08:00, to: 2026-11-20T05:00:00+08:00}
    - {tag: s3, from: 2026-11-21T05:00:00+08:00, to: 2026-11-30T05:00:00+08:00}
  - {name: daily, board: "daily:{period}", period: day, starts: "05:00", tz: Asia/Shanghai}
`

// TestSeasons asks for seasons by all names before, in, between and behind them, on one connection, so that what
// is kept of an answer is asked for as well.
func TestSeasons(t *testing.T) {
	env := newClassEnv(t)
	env.load(t, seasonFile)
	s := env.start(t)
	const top = "/v1/classes/ladder/top?zone=7"
	for _, c := range []struct{ now, at, want string }{
		{"2026-11-01T04:59:59+08:00", "now", `404 "code":"no_period","next_start":"2026-11-01T05:00:00+08:00","detail":"no season runs at 2026-11-01T04:59:59+08:00: season s1 begins at 2026-11-01T05:00:00+08:00"}`},
		{"2026-11-01T04:59:59+08:00", "previous", `404 "code":"no_period","next_start":"2026-11-01T05:00:00+08:00"`},
		{"2026-11-01T05:00:00+08:00", "now", `200 "board":"ladder:7:s1"`},
		{"2026-11-01T05:00:00+08:00", "previous", `404 "code":"no_period","next_start":"2026-11-01T05:00:00+08:00","detail":"no season has ended by`},
		{"2026-11-10T05:00:00+08:00", "now", `200 "board":"ladder:7:s2"`},
		{"2026-11-10T05:00:00+08:00", "previous", `200 "period":{"tag":"s1","start":"2026-11-01T05:00:00+08:00","end":"2026-11-10T05:00:00+08:00","state":"ended"}`},
		{"2026-11-20T04:59:59+08:00", "now", `200 "board":"ladder:7:s2"`},
		{"2026-11-20T04:59:59+08:00", "previous", `404 "code":"unknown_period"`},
		{"2026-11-20T05:00:00+08:00", "now", `404 "code":"no_period","next_start":"2026-11-21T05:00:00+08:00"`},
		{"2026-11-20T05:00:00+08:00", "previous", `200 "board":"ladder:7:s2"`},
		{"2026-11-20T05:00:00+08:00", "s3", `200 "state":"upcoming"`},
		{"2026-11-20T05:00:00+08:00", "2026-11-20T10:00:00Z", `404 "code":"no_period","next_start":"2026-11-21T05:00:00+08:00"`},
		{"2026-11-20T05:00:00+08:00", "2026-11-19T10:00:00Z", `200 "board":"ladder:7:s2"`},
		{"2026-11-20T05:00:00+08:00", "s4", `400 "argument":"at"`},
		{"2026-11-21T05:00:00+08:00", "now", `200 "board":"ladder:7:s3"`},
		{"2026-11-21T05:00:00+08:00", "previous", `200 "board":"ladder:7:s2"`},
		{"2026-11-30T05:00:00+08:00", "now", `404 "code":"no_period","detail":"no season runs at 2026-11-30T05:00:00+08:00, and no further one is planned"}`},
		{"2026-11-30T05:00:00+08:00", "previous", `200 "board":"ladder:7:s3"`},
	} {
		env.set(c.now)
		want, text, _ := strings.Cut(c.want, " ")
		for range 3 {
			a := s.do(t, "GET", top+"&at="+strings.ReplaceAll(c.at, "+", "%2B"), "")
			if status := map[int]string{200: "200", 400: "400", 404: "404"}[a.status]; status != want || !strings.Contains(a.body, text) {
				t.Errorf("%s at %s: %d %s, want %s", c.at, c.now, a.status, a.body, c.want)
			}
		}
	}
}

// TestSeasonsAreListed also while none runs.
func TestSeasonsAreListed(t *testing.T) {
	env := newClassEnv(t)
	env.load(t, seasonFile)
	s := env.start(t)
	for now, want := range map[string]string{
		"2026-11-20T05:00:00+08:00": `"running":null,"seasons":[{"tag":"s1","start":"2026-11-01T05:00:00+08:00","end":"2026-11-10T05:00:00+08:00","state":"gone"},{"tag":"s2",`,
		"2026-11-21T05:00:00+08:00": `"running":{"tag":"s3","start":"2026-11-21T05:00:00+08:00","end":"2026-11-30T05:00:00+08:00","state":"running"},"seasons":[`,
		"2026-11-22T04:59:59+08:00": `"starts":"05:00","running":{"tag":"20261121","start":"2026-11-21T05:00:00+08:00","end":"2026-11-22T05:00:00+08:00","state":"running"}}`,
	} {
		env.set(now)
		if a := s.get(t, "/v1/classes"); a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("at %s: %d %s, want %s", now, a.status, a.body, want)
		}
	}
}

// TestTrendOverSeasons: the season before is the one before the gap; before the first one nobody had a rank.
func TestTrendOverSeasons(t *testing.T) {
	env := newClassEnv(t)
	env.load(t, seasonFile)
	env.Origin.N.Store(3)
	env.Origin.Closed.Store(true)
	env.log = slog.New(slog.DiscardHandler)
	s := env.start(t)
	const top = "/v1/classes/ladder/top?zone=7&trend=1&limit=3"
	for _, c := range []struct {
		now, path, want string
		calls           int64
	}{
		{"2026-11-21T05:00:00+08:00", top, ":1 1:2 2:3", 2},
		{"2026-11-21T05:00:00+08:00", top + "&at=previous", ":1 1:2 2:3", 2},
		{"2026-11-02T05:00:00+08:00", top, ":null 1:null 2:null", 1},
		{"2026-11-02T05:00:00+08:00", top + "&me=m000001", ":null 1:null 2:null 1:null", 1},
		{"2026-11-02T05:00:00+08:00", "/v1/classes/ladder/members/m000001?zone=7&trend=1", "1:null", 1},
	} {
		env.set(c.now)
		env.Origin.Calls.Store(0)
		a := s.do(t, "GET", c.path, "")
		if got := ranksBefore(a.body); a.status != 200 || got != c.want || env.Origin.Calls.Load() != c.calls {
			t.Errorf("%s at %s: %d %q after %d calls, want %q after %d\n%s", c.path, c.now, a.status, got, env.Origin.Calls.Load(), c.want, c.calls, a.body)
		}
	}
	if p, err := env.file.Load().Class("ladder").PeriodAt(rooms.Now, env.settings().Now()); err != nil || p.Tag != "s1" {
		t.Errorf("%+v, %v", p, err)
	}
}
