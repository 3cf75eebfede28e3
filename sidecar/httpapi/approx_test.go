package httpapi

import (
	"context"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit/fixture"
	"rankcache/rooms"
)

// largeOrigin answers with a large board in place of the fixture's, and has its ladder.
type largeOrigin struct{ *fixture.Origin }

func (o largeOrigin) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	o.Origin.Read(ctx, qs, as)
	for i := range as {
		as[i].Members = 2 * rankcache.MinLadder
		for m := range as[i].Own {
			own := &as[i].Own[m]
			own.Stamp.Members = 2 * rankcache.MinLadder
			if qs[i].Ladder != nil {
				own.Approximate(&qs[i])
			}
		}
	}
}

func (o largeOrigin) Ladder(context.Context, rankcache.BoardID) (*rankcache.Ladder, error) {
	return &rankcache.Ladder{Run: 1, Seq: 7, Members: 2 * rankcache.MinLadder, At: time.Now().Add(-time.Second), Rungs: []rankcache.Rung{
		{Entry: rankcache.Entry{Member: "a", Score: 1e9}, Rank: 1}, {Entry: rankcache.Entry{Member: "b", Score: -1e9}, Rank: 2 * rankcache.MinLadder}}}, nil
}

// TestApproximateRanks on each tier and by each read: those of copies are exact and say so, as are rows, lists by rank, trends and what
// stands next to a member.
func TestApproximateRanks(t *testing.T) {
	env := newEnv()
	cfg := env.config()
	cfg.Origin = largeOrigin{env.Origin}
	cfg.Ladders = largeOrigin{env.Origin}
	file, err := rooms.Parse([]byte(fixture.Rooms + `
classes:
  - {name: local, board: local, period: none, ranks: approx}
  - {name: any, board: any, period: none, ranks: approx}
  - {name: other, board: other, period: none, ranks: exact}
`))
	if err != nil {
		t.Fatal(err)
	}
	tiers := file.Resolve(nil)
	cfg.Tiers = func() *rooms.Tiers { return tiers }
	s := startReader(t, readerOf(t, cfg), Config{Classes: func() *rooms.File { return file }}, fixture.FailOnWarn(t))
	const approx, exact = `,"rank_within":9999,"ladder_seq":7`, `,"rank_within":0`
	s.get(t, "/v1/boards/other/members/m000001?rank_mode=approx")
	for _, board := range []string{"other", "any"} { // the ladder is asked for behind the first read
		for deadline := time.Now().Add(10 * time.Second); !strings.Contains(s.get(t, "/v1/boards/"+board+"/members/m000001?rank_mode=approx").body, approx); {
			if time.Now().After(deadline) {
				t.Fatal("no ladder")
			}
		}
	}
	for _, c := range []struct {
		method, path, body, want string
		ladder                   bool
	}{
		{"GET", "other/members/m000001?rank_mode=approx&profiles=1", "", approx, true},
		{"GET", "other/members/m000001?rank_mode=approx&percentile=1&order=asc", "", `,"percentile":`, true},
		{"GET", "other/top?limit=2&me=m000300&rank_mode=approx", "", approx, true},
		{"GET", "other/top?limit=2&rank_mode=approx", "", `"score":12999}]}`, false},
		{"POST", "other/members:batch?rank_mode=approx", `{"members":["m000001","m000300"]}`, approx, true},
		{"POST", "other/members:batch?rank_mode=approx&sort=rank", `{"members":["m000001"]}`, `{"place":1,"rank":2,"member":"m000001","score":12999}`, false},
		{"GET", "other/members/m000001?rank_mode=approx&around=1", "", exact, false},
		{"GET", "other/members/m000001", "", `"score":12999}`, false},
		{"GET", "any/members/m000001", "", approx, true},
		{"GET", "any/members/m000001?rank_mode=ordinal", "", `"score":12999}`, false},
		{"POST", "any/members:batch", `{"members":["m000001"]}`, approx, true},
		{"POST", "any/members:batch?sort=rank", `{"members":["m000001"]}`, `"score":12999}`, false},
		{"GET", "any/top?limit=2&me=m000300", "", approx, true},
		{"GET", "local/members/m000001", "", exact, false},
		{"GET", "local/top?limit=2&me=m000300&rank_mode=approx", "", exact, false},
		{"GET", "hot/top?limit=2&me=m000001&rank_mode=approx", "", exact, false},
	} {
		a := s.do(t, c.method, "/v1/boards/"+c.path, c.body)
		if a.status != 200 || !strings.Contains(a.body, c.want) || (a.header.Get("Rankcache-Ladder-Age-Ms") != "") != c.ladder {
			t.Errorf("%s: %d %s, ladder of %q ms\nwant %s", c.path, a.status, a.body, a.header.Get("Rankcache-Ladder-Age-Ms"), c.want)
		}
	}
	if a := s.get(t, "/v1/classes"); strings.Count(a.body, `"ranks":"approx"`) != 2 {
		t.Error(a.body)
	}
}
