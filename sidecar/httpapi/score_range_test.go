package httpapi

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
	"rankcache/sidecar/encode"
	"rankcache/wire"
)

// TestByScore compares the answers of a copy and of Redis with all rows of the board: with ties, fractions that are not
// shown, and where the lowest score is the best.
func TestByScore(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 9))
	name := strings.NewReplacer(".", "", "_", "", "-", "", ":", "").Replace(testkit.Name(t))
	for _, c := range []struct {
		id    string
		form  rankcache.ScoreForm
		score func() float64 // raw
	}{
		{"plain." + name, rankcache.ScoreNumber, func() float64 { return [...]float64{-2.5, 0, 1, 0.1, 1e300, float64(r.IntN(20))}[r.IntN(6)] }},
		{"ties." + name, rankcache.ScoreInteger, func() float64 { return float64(r.IntN(20)-9) + float64(r.IntN(64))/64 }},
		{"laps." + name, rankcache.ScoreLowest, func() float64 { return -float64(r.IntN(20)) / 2 }},
		{"races." + name, rankcache.ScoreInteger | rankcache.ScoreLowest, func() float64 { return float64(9-r.IntN(20)) + float64(r.IntN(64))/64 }},
	} {
		w := newTwins(t, rankcache.BoardID(c.id))
		var entries []rankcache.Entry
		for m := range 90 {
			e := rankcache.Entry{Member: fixture.Member(m), Score: c.score()}
			w.change(rankcache.BoardID(c.id), wire.OpSet, e.Member, e.Score)
			entries = append(entries, e)
		}
		for range 120 {
			w.checkByScore(r, c.id, entries, c.form)
		}
	}
}

func (w *twins) checkByScore(r *rand.Rand, id string, entries []rankcache.Entry, form rankcache.ScoreForm) {
	w.t.Helper()
	order := []string{"desc", "asc", ""}[r.IntN(3)]
	board := newRankedBoard(entries, order, form)
	shown := func() float64 {
		return []float64{float64(r.IntN(24) - 11), float64(r.IntN(40)-19) / 4, board[r.IntN(len(board))].Score, 1e300, 0.1}[r.IntN(5)]
	}
	query := url.Values{}
	if order != "" {
		query.Set("order", order)
	} else if order = "desc"; form.Lowest() {
		order = "asc"
	}
	score := shown()
	better, equal := 0, 0
	for _, e := range board {
		switch {
		case e.Score == score:
			equal++
		case (e.Score > score) == (order == "desc"):
			better++
		}
	}
	path := fmt.Sprintf("/v1/boards/%s/scores/%s?%s", id, strconv.FormatFloat(score, 'g', -1, 64), query.Encode())
	want := fmt.Sprintf(`"order":"%s","score":%s,"rank":%d,"members":%d}`, order, wire.AppendScore(nil, score), better+1, equal)
	least, most := shown(), shown()
	if least > most {
		least, most = most, least
	}
	if r.IntN(4) > 0 {
		query.Set("min_score", strconv.FormatFloat(least, 'f', -1, 64))
	} else {
		least = math.Inf(-1)
	}
	if r.IntN(4) > 0 || math.IsInf(least, -1) {
		query.Set("max_score", strconv.FormatFloat(most, 'e', -1, 64))
	} else {
		most = math.Inf(1)
	}
	first, matches := len(board), 0
	for i, e := range board {
		if inside := e.Score >= least && e.Score <= most; inside || first == len(board) && (e.Score < least) == (order == "desc") {
			first = min(first, i)
			if inside {
				matches++
			}
		}
	}
	start, limit := r.IntN(5), r.IntN(30)
	query.Set("start", strconv.Itoa(start))
	query.Set("limit", strconv.Itoa(limit))
	query.Set("me", board[3].Member)
	query.Set("rank_mode", "competition")
	page := fmt.Sprintf("/v1/boards/%s/top?%s", id, query.Encode())
	rows := []any{order, first + start, limit, matches, board.rows(first+start, first+min(start+limit, matches), "competition", false), board.rows(3, 4, "competition", false)[0]}
	for _, s := range []*Server{w.local, w.redis} {
		if got := bodyOf(w.t, s, path, ""); !strings.HasSuffix(got, want) {
			w.t.Fatalf("%s: %s, want %s", path, got, want)
		}
		var got struct {
			rankedBody
			Start, Limit, Matches int
		}
		if err := json.Unmarshal([]byte(bodyOf(w.t, s, page, "")), &got); err != nil || got.Me == nil {
			w.t.Fatal(err)
		}
		if diff := gocmp.Diff(rows, []any{got.Order, got.Start, got.Limit, got.Matches, got.Entries, got.Me.rankedRow}); diff != "" {
			w.t.Fatalf("%s (-want +got):\n%s", page, diff)
		}
	}
}

// TestByScoreRequests asks by class and board, with what is wrong.
func TestByScoreRequests(t *testing.T) {
	env := newClassEnv(t)
	env.log = nil
	s := env.start(t)
	const half, local = "/v1/classes/gift-half-hour", "/v1/boards/gift:7:20261122-35"
	best := strconv.FormatFloat(fixture.ScoreAt(35, 600, 0), 'f', -1, 64)
	for path, want := range map[string]string{
		half + "/scores/" + best + "?zone=7":                                  `"score":` + best + `,"rank":1,"members":1,"class":"gift-half-hour","period":{"tag":"20261122-35",`,
		half + "/scores/35599.5?zone=7&at=now":                                `"score":35599.5,"rank":2,"members":0,"class":`,
		local + "/scores/-1e3":                                                `"score":-1000,"rank":601,"members":0}`,
		local + "/scores/%2D1":                                                `"score":-1,"rank":601,"members":0}`,
		local + "/scores/0?order=asc":                                         `"order":"asc","score":0,"rank":1,"members":0}`,
		local + "/top?min_score=35599&limit=1":                                `"start":0,"limit":1,"matches":2,"entries":[{"rank":1,"member":"m000000","score":35600}]}`,
		local + "/top?max_score=35599&min_score=35598.5&limit=0":              `"start":1,"limit":0,"matches":1,"entries":[]}`,
		half + "/top?zone=7&min_score=35599&limit=1&me=m000001&trend=1&gap=1": `"matches":2,"entries":[{"rank":1,"member":"m000000","score":35600,"previous_rank":`,
	} {
		a := s.get(t, path)
		if a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s, want %s", path, a.status, a.body, want)
		}
		if again := s.get(t, path, "If-None-Match", a.header.Get("Etag")); again.status != 304 {
			t.Errorf("%s again: %d", path, again.status)
		}
	}
	for path, argument := range map[string]string{
		local + "/scores/":                            "score",
		local + "/scores/x":                           "score",
		local + "/scores/NaN":                         "score",
		local + "/scores/inf":                         "score",
		local + "/scores/1e999":                       "score",
		local + "/scores/0x10":                        "score",
		local + "/scores/1_000":                       "score",
		local + "/scores/1?limit=1":                   "limit",
		local + "/scores/1?min_score=1":               "min_score",
		local + "/scores/1?rank_mode=dense":           "rank_mode",
		local + "/scores/1?at=now":                    "at",
		half + "/scores/1":                            "zone",
		local + "/top?min_score=":                     "min_score",
		local + "/top?max_score=Inf":                  "max_score",
		local + "/top?min_score=2&max_score=1":        "min_score",
		local + "/top?min_score=2&min_score=1":        "min_score",
		local + "/top?limit=0":                        "limit",
		half + "/top?zone=7&min_score=1&limit=21":     "limit",
		local + "/members/m000001?min_score=1":        "min_score",
		half + "/top?zone=7&limit=0":                  "limit",
		"/v1/boards/gift:7:20261122-35/scores/1?x=1":  "x",
		"/v1/classes/gift-half-hour/top?min_score=1":  "zone",
		"/v1/classes/gift-half-hour/scores/1?zone=7;": "zone",
	} {
		checkProblem(t, s.do(t, "GET", path, ""), 400, encode.CodeBadArgument, argument)
	}
	for _, path := range []string{local + "/scores", local + "/scores/1/2", half + "/scores/1/2?zone=7"} {
		checkProblem(t, s.do(t, "GET", path, ""), 404, encode.CodeUnknownPath, "")
	}
	checkProblem(t, s.do(t, "POST", local+"/scores/1", ""), 405, encode.CodeBadMethod, "")
}

// TestBeyondWhatIsKept: a board that keeps its best members tells where its ranks end.
func TestBeyondWhatIsKept(t *testing.T) {
	env := newEnv()
	env.Origin.N.Store(10)
	cfg := env.config()
	cfg.Tiers = fixture.Tiers(`classes: [{name: best, board: "best_{x}", period: none, ops: [incr], trim: 10}]`)
	s := startReader(t, readerOf(t, cfg), Config{}, fixture.FailOnWarn(t))
	for path, want := range map[string]string{
		"/scores/0":                 `"score":0,"rank":null,"members":0,"beyond":true}`,
		"/scores/12001":             `"rank":10,"members":1,"beyond":true}`,
		"/scores/12005":             `"rank":6,"members":1}`,
		"/scores/99999":             `"rank":1,"members":0}`,
		"/top?max_score=12003":      `"matches":3,"beyond":true,"entries":[`,
		"/top?min_score=12003":      `"matches":8,"entries":[`,
		"/top?min_score=1&limit=1":  `"matches":10,"beyond":true,"entries":[`,
		"/top?max_score=11&limit=0": `"start":10,"limit":0,"matches":0,"beyond":true,"entries":[]}`,
	} {
		if a := s.get(t, "/v1/boards/best_1"+path); a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s, want %s", path, a.status, a.body, want)
		}
	}
}
