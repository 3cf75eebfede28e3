package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
	"rankcache/wire"
)

// listedRow is a row of a list by rank as a caller reads it.
type listedRow struct {
	Place *int
	rankedRow
}

// placesOf are the rows that a list by rank has, each counted by looking at all before it.
func placesOf(board rankedBoard, rows []rankedRow, mode string) (list []listedRow) {
	at := func(row rankedRow) int { // absent last
		i := slices.IndexFunc(board, func(e rankcache.Entry) bool { return e.Member == row.Member })
		if i < 0 {
			return len(board)
		}
		return i
	}
	slices.SortStableFunc(rows, func(a, b rankedRow) int { return cmp.Compare(at(a), at(b)) })
	for i, row := range rows {
		if row.Rank == nil {
			list = append(list, listedRow{nil, row})
			continue
		}
		better, scores := 0, map[float64]bool{}
		for _, other := range rows[:i] {
			if *other.Score != *row.Score {
				scores[*other.Score] = true
				better++
			}
		}
		list = append(list, listedRow{new(map[string]int{"ordinal": i, "competition": better, "dense": len(scores)}[mode] + 1), row})
	}
	return list
}

// TestFriends compares lists by rank of a copy and of Redis with places that are counted row by row.
func TestFriends(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 7))
	for prefix, form := range map[string]rankcache.ScoreForm{"": 0, "ties.": rankcache.ScoreInteger, "laps.": rankcache.ScoreLowest, "races.": rankcache.ScoreInteger | rankcache.ScoreLowest} {
		for _, size := range []int{1, 9, 700} {
			id := rankcache.BoardID(prefix + strings.NewReplacer(".", "", "_", "", "-", "", ":", "").Replace(testkit.Name(t)))
			w := newTwins(t, id)
			var entries []rankcache.Entry
			for m := range size {
				e := rankcache.Entry{Member: fixture.Member(m), Score: form.Raw(float64(r.IntN(1 + size/3)))}
				if form.Integer() {
					e.Score += float64(r.IntN(64)) / 64
				}
				w.change(id, wire.OpSet, e.Member, e.Score)
				entries = append(entries, e)
			}
			for range 25 {
				w.checkFriends(r, id, entries, form)
			}
		}
	}
}

func (w *twins) checkFriends(r *rand.Rand, id rankcache.BoardID, entries []rankcache.Entry, form rankcache.ScoreForm) {
	w.t.Helper()
	order, mode := []string{"desc", "asc"}[r.IntN(2)], []string{"ordinal", "competition", "dense"}[r.IntN(3)]
	board := newRankedBoard(entries, order, form)
	all := append(board.rows(0, len(board), mode, false), rankedRow{Member: "nobody"}, rankedRow{Member: "none"})
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	friends := slices.Clone(all[:1+r.IntN(min(len(all), rankcache.MaxTop-1))])
	query := fmt.Sprintf("?sort=rank&order=%s&rank_mode=%s", order, mode)
	var members []string
	for _, f := range friends {
		members = append(members, f.Member)
	}
	me := all[r.IntN(len(all))]
	if asked := r.IntN(3) > 0; !asked {
		me = rankedRow{}
	} else if query += "&me=" + me.Member; !slices.Contains(members, me.Member) {
		friends = append(friends, me)
	}
	want := placesOf(board, friends, mode)
	var wantMe *listedRow
	if i := slices.IndexFunc(want, func(l listedRow) bool { return l.Member == me.Member }); i >= 0 && want[i].Place != nil {
		wantMe = &want[i]
	}
	if limit := 1 + r.IntN(len(want)+2); r.IntN(2) == 0 && limit <= rankcache.MaxTop {
		query, want = query+fmt.Sprintf("&limit=%d", limit), want[:min(limit, len(want))]
	}
	servers := []*Server{w.local, w.redis}
	if mode == "dense" {
		servers = servers[:1]
	}
	body, _ := json.Marshal(map[string]any{"members": members})
	for _, s := range servers {
		var got struct {
			Members []listedRow
			Me      *listedRow
		}
		text := bodyOf(w.t, s, fmt.Sprintf("/v1/boards/%s/members:batch%s", id, query), string(body))
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			w.t.Fatal(err)
		}
		if diff := gocmp.Diff([]any{want, wantMe}, []any{got.Members, got.Me}, gocmp.AllowUnexported(listedRow{})); diff != "" || strings.Contains(text, `"me":`) != (me.Member != "") {
			w.t.Fatalf("%s %s (-want +got):\n%s", query, body, diff)
		}
	}
}

// TestMostFriends: on every tier a list may have as many members as an answer has rows, in all modes
// that there are for it.
func TestMostFriends(t *testing.T) {
	env := newEnv()
	env.Origin.N.Store(600)
	s := start(t, env, Config{})
	members := make([]string, rankcache.MaxTop)
	for i := range members {
		members[i] = fixture.Member(600 - 1 - i)
	}
	body := func(n int) string {
		text, _ := json.Marshal(map[string]any{"members": members[:n]})
		return string(text)
	}
	for _, board := range []string{"local", "hot", "any"} {
		for _, mode := range []string{"ordinal", "competition"} {
			path := "/v1/boards/" + board + "/members:batch?sort=rank&limit=2&rank_mode=" + mode
			if a := s.do(t, "POST", path, body(rankcache.MaxTop)); a.status != 200 || strings.Count(a.body, `"place":`) != 2 {
				t.Errorf("%s: %d %.300s", path, a.status, a.body)
			}
		}
		a := s.do(t, "POST", "/v1/boards/"+board+"/members:batch?sort=rank&limit=1&me="+members[3], body(rankcache.MaxTop))
		if a.status != 200 || !strings.Contains(a.body, `"me":{"place":`) {
			t.Errorf("%s with me among them: %d %.300s", board, a.status, a.body)
		}
	}
}

// TestFriendsOfAClass are those of the board that class, dimensions and period name, with profiles
// and trend.
func TestFriendsOfAClass(t *testing.T) {
	_, s := trendEnv(t)
	const list = `{"members":["m000002","nobody","m000001","m000000"]}`
	for _, c := range []struct{ query, want string }{
		{"", `"members":[{"rank":3,"member":"m000002","score":35598},{"rank":null,"member":"nobody","score":null},{"rank":2,"member":"m000001","score":35599},{"rank":1,"member":"m000000","score":35600}],"class":"gift-half-hour","period":{"tag":"20261122-35",`},
		{"&sort=rank", `"members":[{"place":1,"rank":1,"member":"m000000","score":35600},{"place":2,"rank":2,"member":"m000001","score":35599},{"place":3,"rank":3,"member":"m000002","score":35598},{"place":null,"rank":null,"member":"nobody","score":null}],"class":`},
		{"&sort=rank&limit=1&me=m000002&profiles=1", `"members":[{"place":1,"rank":1,"member":"m000000","score":35600,"profile":{"nick":"N-m000000","v":0}}],"me":{"place":3,"rank":3,"member":"m000002","score":35598,"profile":{"nick":"N-m000002","v":0}},"profiles_missing":0,"class":`},
		{"&sort=rank&limit=1&me=m000009&trend=1", `"members":[{"place":1,"rank":1,"member":"m000000","score":35600,"previous_rank":1}],"me":{"place":4,"rank":10,"member":"m000009","score":35591,"previous_rank":null},"class":`},
		{"&sort=rank&me=nobody&limit=1", `"me":null,"class":`},
		{"&trend=1", `{"rank":null,"member":"nobody","score":null},{"rank":2,"member":"m000001","score":35599,"previous_rank":2}`},
		{"&at=previous&sort=rank&limit=1", `"period":{"tag":"20261122-34",`},
	} {
		if a := s.do(t, "POST", halfHour+"/members:batch?zone=7"+c.query, list); a.status != 200 || !strings.Contains(a.body, c.want) {
			t.Errorf("%s: %d %s\nwant %s", c.query, a.status, a.body, c.want)
		}
	}
	for path, want := range map[string]string{
		halfHour + "/members:batch":                            `"argument":"zone"`,
		"/v1/classes/other/members:batch":                      `"code":"unknown_class"`,
		halfHour + "/members:batch?zone=7&sort=score":          `"argument":"sort"`,
		halfHour + "/members:batch?zone=7&limit=3":             `"argument":"limit","detail":"is of a list by rank`,
		halfHour + "/members:batch?zone=7&me=a":                `"argument":"me","detail":"is of a list by rank`,
		halfHour + "/members:batch?zone=7&sort=rank&limit=0":   `"argument":"limit"`,
		halfHour + "/members:batch?zone=7&sort=rank&limit=501": `"argument":"limit"`,
		halfHour + "/members:batch?zone=7&sort=rank&me=":       `"argument":"me"`,
		halfHour + "/members:batch?zone=7&sort=rank&start=1":   `"argument":"start"`,
		"/v1/boards/local/members:batch?sort=rank&sort=rank":   `is given twice`,
		"/v1/boards/local/members:batch?at=previous":           `"argument":"at"`,
		"/v1/boards/local/top?sort=rank":                       `"argument":"sort"`,
	} {
		method := "POST"
		if strings.Contains(path, "/top") {
			method = "GET"
		}
		if a := s.do(t, method, path, list); a.status < 400 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s, want %s", path, a.status, a.body, want)
		}
	}
	const twice = `{"members":["m000001","b","m000000","b","m000001"]}`
	for query, n := range map[string]int{"": 5, "&sort=rank": 3} { // a list by rank has each once
		if a := s.do(t, "POST", halfHour+"/members:batch?zone=7"+query, twice); a.status != 200 || strings.Count(a.body, `"rank":`) != n {
			t.Errorf("%s: %d %s, want %d", query, a.status, a.body, n)
		}
	}
	if a := s.do(t, "GET", halfHour+"/members:batch?zone=7", ""); a.status != 405 {
		t.Error(a.status, a.body)
	}
	many := make([]string, rankcache.MaxTop)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	text, _ := json.Marshal(map[string]any{"members": many})
	if a := s.do(t, "POST", halfHour+"/members:batch?zone=7&sort=rank&me=a", string(text)); a.status != 400 || !strings.Contains(a.body, `501 members`) {
		t.Error(a.status, a.body)
	}
}

// TestTrimmedFriends stand behind those with a rank, by their scores.
func TestTrimmedFriends(t *testing.T) {
	env := newEnv()
	cfg := env.config()
	cfg.Tiers = fixture.Tiers("classes:\n- {name: local, board: local, period: none, ops: [incr], trim: 3, ties: first}\n")
	env.Origin.N.Store(3)
	for member, score := range map[string]float64{"x1": 5.25, "x2": 7, "x3": 5} {
		env.Origin.Trimmed.Store(member, score)
	}
	cfg.Boards = nil
	s, err := New(readerOf(t, cfg), Config{}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = `"members":[{"place":1,"rank":1,"member":"m000000","score":12003},{"place":2,"rank":null,"member":"x2","score":7},{"place":3,"rank":null,"member":"x1","score":5},{"place":3,"rank":null,"member":"x3","score":5},{"place":null,"rank":null,"member":"x4","score":null}]`
	if got := bodyOf(t, s, "/v1/boards/local/members:batch?sort=rank&rank_mode=competition", `{"members":["x1","x4","m000000","x2","x3"]}`); !strings.Contains(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// BenchmarkFriends compares lists by rank with batches of the same members: the handler alone, on a
// whole board.
func BenchmarkFriends(b *testing.B) {
	s, err := New(benchReader(b), Config{}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	members := make([]string, rankcache.MaxTop)
	for i := range members {
		members[i] = fmt.Sprint(1_000_000 + r.IntN(bigSize))
	}
	slices.Sort(members)
	members = slices.Compact(members)
	r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	body, _ := json.Marshal(map[string]any{"members": members})
	for _, p := range []struct{ name, query string }{{"batch", ""}, {"by-rank", "?sort=rank"}, {"by-rank-10-me", "?sort=rank&limit=10&me=" + members[0]}} {
		b.Run(p.name, func(b *testing.B) {
			ctx := requestCtx("/v1/boards/local/members:batch" + p.query)
			ctx.Request.Header.SetMethod("POST")
			ctx.Request.SetBody(body)
			b.ReportAllocs()
			for b.Loop() {
				ctx.Response.Reset()
				s.checkHost(ctx)
			}
			if ctx.Response.StatusCode() != 200 {
				b.Fatal(ctx.Response.String())
			}
		})
	}
}
