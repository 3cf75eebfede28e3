package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
	"rankcache/localboard"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/wire"
)

// rankedRow is a row as a caller reads it.
type rankedRow struct {
	Rank       *int
	Member     string
	Score      *float64
	Percentile *float64
}

type rankedBody struct {
	rankedRow
	Order               string
	Entries, Neighbours []rankedRow
	Me                  *struct {
		rankedRow
		Neighbours []rankedRow
	}
}

// rankedBoard is all the rows of a board, sorted by their scores in Redis, with what is
// shown of them.
type rankedBoard []rankcache.Entry

func newRankedBoard(entries []rankcache.Entry, order string, form rankcache.ScoreForm) rankedBoard {
	b := slices.Clone(entries)
	slices.SortFunc(b, func(x, y rankcache.Entry) int {
		return cmp.Or(cmp.Compare(x.Score, y.Score), cmp.Compare(x.Member, y.Member))
	})
	if order == "" || (order == "desc") != form.Lowest() {
		slices.Reverse(b)
	}
	for i := range b {
		b[i].Score = form.Shown(b[i].Score)
	}
	return b
}

// rows returns the rows from one index to before another as they are to be answered, each
// counted by looking at all rows of the board.
func (b rankedBoard) rows(from, to int, mode string, percentile bool) []rankedRow {
	rows := []rankedRow{}
	for i := max(from, 0); i < min(to, len(b)); i++ {
		scores := map[float64]bool{}
		better := 0
		for _, e := range b[:i] {
			if e.Score != b[i].Score {
				scores[e.Score] = true
				better++
			}
		}
		row := rankedRow{Rank: new(map[string]int{"ordinal": i, "competition": better, "dense": len(scores)}[mode] + 1), Member: b[i].Member, Score: &b[i].Score}
		if percentile {
			row.Percentile = new(math.Floor(float64((len(b)-better)*10_000)/float64(len(b))) / 100)
		}
		rows = append(rows, row)
	}
	return rows
}

// TestRankModes compares the answers of a copy and of Redis with ranks that are counted
// row by row: boards of several sizes with many ties, both directions, members at both ends.
func TestRankModes(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 7))
	for _, size := range []int{1, 2, 7, 100} {
		w := newTwins(t, rankcache.BoardID(testkit.Name(t)))
		w.checkAllRanked(r, size, func() float64 { return [...]float64{-2.5, 0, 1, 0.1, 1e300, float64(r.IntN(size))}[r.IntN(6)] }, rankcache.ScoreNumber)
	}
}

// TestIntegerScores does that on a board with a tie-break in the fractions of its scores.
func TestIntegerScores(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 6))
	w := newTwins(t, rankcache.BoardID("ties."+strings.NewReplacer(".", "", "_", "", "-", "", ":", "").Replace(testkit.Name(t))))
	w.checkAllRanked(r, 200, func() float64 { return float64(r.IntN(30)-9) + float64(r.IntN(64))/64 }, rankcache.ScoreInteger)
	for id := range w.boards {
		for _, s := range []*Server{w.local, w.redis} {
			for path, body := range integerPaths(string(id)) {
				if got := bodyOf(t, s, path, body); fractions.MatchString(got) {
					t.Errorf("%s %s: %s", path, body, fractions.FindString(got))
				}
			}
		}
	}
}

var fractions = regexp.MustCompile(`"(score|gap)":-?[0-9]+\.[0-9]+`)

// integerPaths are requests of all kinds, with their bodies.
func integerPaths(id string) map[string]string {
	b := "/v1/boards/" + id
	return map[string]string{
		b + "/top": "", b + "/top?me=m000011": "", b + "/top?limit=1&me=m000011&around=2&gap=1&order=asc": "", b + "/top?limit=3&profiles=1": "",
		b + "/members/m000011": "", b + "/members/m000011?around=2": "", b + "/members/m000011?percentile=1": "",
		b + "/members:batch": `{"members":["m000011","m000012"]}`,
		"/v1/boards:batch":   `{"boards":[{"board":"` + id + `","me":"m000011","gap":true}]}`,
	}
}

// TestLowestFirst does it where the lowest score is the best, with and without a tie-break.
func TestLowestFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 5))
	name := strings.NewReplacer(".", "", "_", "", "-", "", ":", "").Replace(testkit.Name(t))
	w := newTwins(t, rankcache.BoardID("laps."+name))
	w.checkAllRanked(r, 100, func() float64 { return [...]float64{-2.5, 0, 1, -0.1, -1e300, -float64(r.IntN(100))}[r.IntN(6)] }, rankcache.ScoreLowest)
	w = newTwins(t, rankcache.BoardID("races."+name))
	w.checkAllRanked(r, 100, func() float64 { return float64(9-r.IntN(30)) + float64(r.IntN(64))/64 }, rankcache.ScoreInteger|rankcache.ScoreLowest)
}

// TestIntegersOfHotBoards: the encoded pages of a board, whose class is known by its id, don't
// mix with those from before the class was.
func TestIntegersOfHotBoards(t *testing.T) {
	env := newEnv()
	cfg := env.config()
	tiers, ofClass := fixture.Tiers(""), fixture.Tiers("classes:\n  - {name: ties, board: \"ties_{name}\", period: none, ties: last}\n")
	classes := false
	cfg.Tiers = func() *rooms.Tiers {
		if classes {
			return ofClass()
		}
		return tiers()
	}
	top := fixture.NewTop("ties_1", 100, 100, 7)
	for i := range top.Entries {
		top.Entries[i].Score = float64(100-i/2) + float64(99-i)/128
	}
	env.Hot.Set(top)
	s := serverOf(t, cfg)
	for range 2 {
		for path, body := range integerPaths("ties_1") {
			if strings.Contains(path, "members") || strings.Contains(path, "order=asc") {
				continue // which Redis answers
			}
			for _, classes = range []bool{false, true} {
				got := bodyOf(t, s, path, body)
				if fractions.MatchString(got) == classes {
					t.Errorf("%s %s: with the class %t: %s", path, body, classes, got)
				}
			}
		}
	}
	want := `"gap":1}`
	if got := bodyOf(t, s, "/v1/boards/ties_1/top?limit=1&me=m000011&gap=1", ""); !strings.Contains(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}

func (w *twins) checkAllRanked(r *rand.Rand, size int, score func() float64, form rankcache.ScoreForm) {
	w.t.Helper()
	for id := range w.boards {
		var entries []rankcache.Entry
		for m := range size {
			e := rankcache.Entry{Member: fixture.Member(m), Score: score()}
			w.change(id, wire.OpSet, e.Member, e.Score)
			entries = append(entries, e)
		}
		for range 60 {
			w.checkRanked(r, id, entries, form)
		}
	}
}

func (w *twins) checkRanked(r *rand.Rand, id rankcache.BoardID, entries []rankcache.Entry, form rankcache.ScoreForm) {
	w.t.Helper()
	order, mode := []string{"desc", "asc", ""}[r.IntN(3)], []string{"ordinal", "competition", "dense"}[r.IntN(3)]
	board, percentile := newRankedBoard(entries, order, form), r.IntN(2) == 0
	start, limit, around := r.IntN(len(board)+2), 1+r.IntN(len(board)+2), r.IntN(6)-1
	own := []int{0, len(board) - 1, r.IntN(len(board))}[r.IntN(3)]
	query := "?rank_mode=" + mode
	if order != "" {
		query += "&order=" + order
	} else if order = "desc"; form.Lowest() {
		order = "asc"
	}
	var neighbours []rankedRow
	if around >= 0 {
		query += fmt.Sprintf("&around=%d", around)
		neighbours = board.rows(own-around, own+around+1, mode, percentile)
	}
	if percentile {
		query += "&percentile=1"
	}
	top := fmt.Sprintf("/v1/boards/%s/top%s&start=%d&limit=%d&me=%s", id, query, start, limit, board[own].Member)
	member := fmt.Sprintf("/v1/boards/%s/members/%s%s", id, board[own].Member, query)
	servers := []*Server{w.local, w.redis}
	if mode == "dense" {
		servers = servers[:1]
	}
	for _, s := range servers {
		var page, standing rankedBody
		for path, body := range map[string]*rankedBody{top: &page, member: &standing} {
			if err := json.Unmarshal([]byte(bodyOf(w.t, s, path, "")), body); err != nil {
				w.t.Fatal(err)
			}
		}
		w.checkRankedBatch(s, id, board, query, mode, percentile)
		if page.Me == nil || page.Order != order || standing.Order != order {
			w.t.Fatalf("%s: no me, or the order %q and %q, want %q", top, page.Order, standing.Order, order)
		}
		me := board.rows(own, own+1, mode, percentile)[0]
		want := []any{board.rows(start, start+limit, mode, percentile), me, neighbours, me, neighbours}
		got := []any{page.Entries, page.Me.rankedRow, page.Me.Neighbours, standing.rankedRow, standing.Neighbours}
		if diff := gocmp.Diff(want, got); diff != "" {
			w.t.Fatalf("%s and %s (-want +got):\n%s", top, member, diff)
		}
	}
}

// checkRankedBatch compares the standings of the board's members, and of nobody.
func (w *twins) checkRankedBatch(s *Server, id rankcache.BoardID, board rankedBoard, query, mode string, percentile bool) {
	w.t.Helper()
	var members []string
	for _, e := range board {
		members = append(members, e.Member)
	}
	want := append(board.rows(0, len(board), mode, percentile), rankedRow{Member: "nobody"})
	query = strings.Replace(query, "&around=", "&room=", 1) // a batch has no neighbours
	body, _ := json.Marshal(map[string]any{"members": append(members, "nobody")})
	var got struct{ Members []rankedRow }
	if err := json.Unmarshal([]byte(bodyOf(w.t, s, fmt.Sprintf("/v1/boards/%s/members:batch%s", id, query), string(body))), &got); err != nil {
		w.t.Fatal(err)
	}
	if diff := gocmp.Diff(want, got.Members); diff != "" {
		w.t.Fatalf("%s (-want +got):\n%s", query, diff)
	}
}

// TestHotRankModes: a hot page counts on its own rows; for a member beyond it Redis counts,
// of its own members.
func TestHotRankModes(t *testing.T) {
	env := newEnv()
	s := start(t, env, Config{})
	for path, calls := range map[string]int64{
		"/v1/boards/hot/top?start=3&limit=2&rank_mode=competition&percentile=1":             0,
		"/v1/boards/hot/top?limit=2&rank_mode=competition&percentile=1&me=m000090&around=2": 0,
		"/v1/boards/hot/top?limit=2&rank_mode=competition&percentile=1&me=m000500":          1,
		"/v1/boards/hot/members/m000001?rank_mode=competition":                              1,
	} {
		env.Origin.Calls.Store(0)
		a := s.do(t, "GET", path, "")
		if a.status != 200 || env.Origin.Calls.Load() != calls || strings.Contains(path, "percentile") != strings.Contains(a.body, `"percentile":`) {
			t.Errorf("%s: %d %s after %d calls, want %d", path, a.status, a.body, env.Origin.Calls.Load(), calls)
		}
	}
}

// tiedBoard is a whole board on which two members have each score.
func tiedBoard(t *testing.T, n int) *localboard.Board {
	t.Helper()
	entries := make([]rankcache.Entry, n)
	for i := range entries {
		entries[i] = rankcache.Entry{Member: fmt.Sprint(1_000_000 + i), Score: float64(-(i / 2))}
	}
	b := localboard.New("local")
	if err := b.Load(1, entries); err != nil {
		t.Fatal(err)
	}
	b.Publish()
	return b
}

// TestDenseRefusals: dense ranks are those of whole boards, down to a depth. A page of a
// caller beyond it is answered without the caller.
func TestDenseRefusals(t *testing.T) {
	env := newEnv()
	cfg := env.config()
	const members = rankcache.MaxDense + 5
	cfg.Boards = fixture.Boards[sidecar.Board]{"local": tiedBoard(t, members)}
	s := serverOf(t, cfg)
	for path, want := range map[string]string{
		"/v1/boards/hot/top?rank_mode=dense":                                                   "is not held here",
		"/v1/boards/any/members/m000001?rank_mode=dense":                                       "is not held here",
		fmt.Sprintf("/v1/boards/local/top?limit=1&rank_mode=dense&start=%d", members-5):        `"rank":50001`,
		fmt.Sprintf("/v1/boards/local/top?limit=1&rank_mode=dense&start=%d", members-3):        "the 100000 best members",
		fmt.Sprintf("/v1/boards/local/members/%d?rank_mode=dense", 1_000_000+members-1):        "the 100000 best members",
		fmt.Sprintf("/v1/boards/local/top?limit=1&rank_mode=dense&me=%d", 1_000_000+members-1): `"me":null,"me_error":"rank_mode_refused"`,
	} {
		ctx := requestCtx(path)
		s.handle(ctx)
		answered := strings.HasPrefix(want, `"`)
		if status := ctx.Response.StatusCode(); !strings.Contains(string(ctx.Response.Body()), want) || (status == 200) != answered || !answered && status != 422 {
			t.Errorf("%s: %d %s, want %s", path, status, ctx.Response.Body(), want)
		}
	}
}
