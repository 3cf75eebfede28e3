package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/sidecar"
	"rankcache/wire"
)

// twins are two servers of the same boards: one holds copies, the other asks Redis.
type twins struct {
	t            *testing.T
	client       *redis.Client
	boards       fixture.Boards[sidecar.Board]
	local, redis *Server
}

func newTwins(t *testing.T, ids ...rankcache.BoardID) *twins {
	t.Helper()
	w := &twins{t: t, client: redis.NewClient(&redis.Options{Addr: testkit.Redis(t), ReadTimeout: 10 * time.Second}), boards: fixture.Boards[sidecar.Board]{}}
	t.Cleanup(func() { _ = w.client.Close() })
	file := "boards:\n"
	for _, id := range ids {
		w.boards[id] = localboard.New(id)
		file += fmt.Sprintf("  - {match: %q, mode: super-hot}\n", id)
		t.Cleanup(func() {
			w.client.Del(context.Background(), wire.DefaultNames().BoardKey(id), wire.DefaultNames().MetaKey(id))
		})
	}
	file += `classes:
  - {name: ties, board: "ties.{name}", period: none, ties: first}
  - {name: laps, board: "laps.{name}", period: none, order: asc}
  - {name: races, board: "races.{name}", period: none, order: asc, ties: first}
`
	const patience = 10 * time.Second // of a busy machine
	cfg := sidecar.Config{Tiers: fixture.Tiers(file), Profiles: &fixture.Profiles{}, Limits: sidecar.OriginLimits{Timeout: patience},
		Origin: origin.New(w.client, wire.DefaultNames(), origin.WithTimeout(patience))}
	w.redis = serverOf(t, cfg)
	cfg.Boards = w.boards
	w.local = serverOf(t, cfg)
	return w
}

func serverOf(t *testing.T, cfg sidecar.Config) *Server {
	t.Helper()
	s, err := New(readerOf(t, cfg), Config{}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// change changes a board in Redis and its copy.
func (w *twins) change(id rankcache.BoardID, op wire.Op, member string, score float64) {
	w.t.Helper()
	u := testkit.ChangeBoard(w.t, w.client, wire.DefaultNames(), id, op, member, score)
	w.boards[id].(*localboard.Board).Apply([]wire.Update{u})
	w.boards[id].(*localboard.Board).Publish()
}

// bodyOf returns the body of a GET of path, or of a POST if there is a body.
func bodyOf(t *testing.T, s *Server, path, body string) string {
	t.Helper()
	ctx := requestCtx(path)
	if body != "" {
		ctx.Request.Header.SetMethod("POST")
		ctx.Request.SetBodyString(body)
	}
	s.handle(ctx)
	if status := ctx.Response.StatusCode(); status != 200 {
		t.Errorf("%s %s: %d %s", path, body, status, ctx.Response.Body())
	}
	return string(ctx.Response.Body())
}

// differs is what may differ between the copy's answer and Redis's.
var differs = regexp.MustCompile(`"source":"\w+"|"published_at":"[^"]*"|,"age_ms":\d+|,"state":"[^"]*"`)

// TestWholePageIsRedis: the copy's answer is Redis's, for boards of all sizes with and
// without ties, members at both ends and absent ones, both directions.
func TestWholePageIsRedis(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 1))
	sizes := []int{0, 1, 2, 3, 9, 120}
	var ids []rankcache.BoardID
	for range sizes {
		ids = append(ids, rankcache.BoardID(testkit.Name(t)))
	}
	w := newTwins(t, ids...)
	for i, id := range ids {
		w.change(id, wire.OpSet, "gone", 1)
		w.change(id, wire.OpDelete, "gone", 0)
		for m := range sizes[i] {
			w.change(id, wire.OpSet, fixture.Member(m), [...]float64{float64(r.IntN(4)), r.NormFloat64() * 1e6, -1.5, 0, 1e300}[r.IntN(2+i%4)])
		}
	}
	for range 120 {
		var batch []string
		for range 1 + r.IntN(sidecar.MaxBatch) {
			i := r.IntN(len(ids))
			batch = append(batch, randomRead(r, ids[i], sizes[i]))
		}
		body := `{"boards":[` + strings.Join(batch, ",") + `]}`
		w.compare("/v1/boards:batch", body)
		w.compare(getOf(t, batch[0]), "")
	}
}

func (w *twins) compare(path, body string) {
	w.t.Helper()
	here, there := bodyOf(w.t, w.local, path, body), bodyOf(w.t, w.redis, path, body)
	if strings.Contains(here, `"redis"`) || !strings.Contains(there, `"redis"`) {
		w.t.Fatalf("%s: the copy did not answer, or Redis did not:\n%s\n%s", path, here, there)
	}
	if diff := cmp.Diff(differs.ReplaceAllString(there, ""), differs.ReplaceAllString(here, "")); diff != "" {
		w.t.Fatalf("%s %s (-redis +copy):\n%s", path, body, diff)
	}
}

// randomRead returns a board of a batch, for which the board has so many members.
func randomRead(r *rand.Rand, id rankcache.BoardID, members int) string {
	options := fmt.Sprintf(`{"board":%q,"start":%d,"limit":%d,"order":%q,"profiles":%t`, id, r.IntN(6)*r.IntN(members+2),
		1+r.IntN(members+5), []string{"desc", "asc"}[r.IntN(2)], r.IntN(3) == 0)
	me := []string{fixture.Member(r.IntN(members + 1)), fixture.Member(0), fixture.Member(max(members-1, 0)), "gone", "nobody"}[r.IntN(5)]
	options += fmt.Sprintf(`,"me":%q,"gap":%t,"rank_mode":%q,"percentile":%t`, me, r.IntN(2) == 0, []string{"ordinal", "competition"}[r.IntN(2)], r.IntN(2) == 0)
	if around := r.IntN(8) - 2; around >= 0 {
		options += fmt.Sprintf(`,"around":%d`, [...]int{0, 1, 2, 4, 50, 100}[around])
	}
	return options + "}"
}

// getOf returns the path of a GET of the same page.
func getOf(t *testing.T, read string) string {
	t.Helper()
	var b boardBody
	if err := json.Unmarshal([]byte(read), &b); err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/v1/boards/%s/top?start=%d&limit=%d&order=%s&me=%s&rank_mode=%s", b.Board, *b.Start, *b.Limit, *b.Order, *b.Me, *b.RankMode)
	if b.Around != nil {
		path += fmt.Sprintf("&around=%d", *b.Around)
	}
	if b.Gap {
		path += "&gap=1"
	}
	if b.Percentile {
		path += "&percentile=1"
	}
	if b.Profiles {
		path += "&profiles=1"
	}
	return path
}

// ownBody is a whole page as a caller reads it.
type ownBody struct {
	Seq     uint64
	Entries []rowBody
	Me      struct {
		rowBody
		Gap        *float64
		Neighbours []rowBody
	}
}

// TestPartsAreOfOneSeq reads while the board changes all the time. Each change gives a
// member a score that no other has, and a page holds all members: so everything that is
// said of one follows from the page.
func TestPartsAreOfOneSeq(t *testing.T) {
	const members = 20
	id := rankcache.BoardID(testkit.Name(t))
	w := newTwins(t, id)
	seq := 0
	change := func() {
		seq++
		w.change(id, wire.OpSet, fixture.Member(seq%members), float64(seq*seq))
	}
	for range members {
		change()
	}
	var readers sync.WaitGroup
	for _, s := range []*Server{w.local, w.redis} {
		readers.Go(func() {
			for i := range 300 {
				query := fmt.Sprintf("me=%s&around=3&gap=1", fixture.Member(i%members)) + strings.Repeat("&order=asc", i/members%2)
				checkParts(t, bodyOf(t, s, "/v1/boards/"+string(id)+"/top?"+query, ""), members)
			}
		})
	}
	done := make(chan struct{})
	go func() { readers.Wait(); close(done) }()
	for {
		select {
		case <-done:
			return
		default:
			change()
		}
	}
}

func checkParts(t *testing.T, body string, members int) {
	t.Helper()
	var p ownBody
	if err := json.Unmarshal([]byte(body), &p); err != nil || len(p.Entries) != members || p.Me.Rank == 0 {
		t.Errorf("%v in %s", err, body)
		return
	}
	own := p.Me.Rank - 1
	row := p.Entries[own]
	if p.Me.Seq != p.Seq || row.Member != p.Me.Member || row.Score != p.Me.Score {
		t.Errorf("me is not of the page: %s", body)
	}
	if want := p.Entries[max(own-3, 0):min(own+4, members)]; !slices.Equal(want, p.Me.Neighbours) {
		t.Errorf("neighbours are not those of the page: %s", body)
	}
	if (own == 0) != (p.Me.Gap == nil) || own > 0 && *p.Me.Gap != p.Entries[own-1].Score-row.Score {
		t.Errorf("gap is not that of the page: %s", body)
	}
}

// TestBatchAsksRedisOnce, whatever the number of boards is, and not for what is here.
func TestBatchAsksRedisOnce(t *testing.T) {
	env := newEnv()
	s := start(t, env, Config{})
	for body, calls := range map[string]int64{
		`{"boards":[{"board":"local","me":"m000001"},{"board":"hot"},{"board":"shut"},{"board":"hot","me":"m000099","gap":true}]}`:           0,
		`{"boards":[{"board":"a"},{"board":"b","me":"m000001"},{"board":"hot","me":"m001000"},{"board":"hot","start":99},{"board":"tiny"}]}`: 1,
	} {
		env.Origin.Calls.Store(0)
		if a := s.do(t, "POST", "/v1/boards:batch", body); a.status != 200 || env.Origin.Calls.Load() != calls {
			t.Errorf("%s: %d, %d calls to Redis, want %d", body, a.status, env.Origin.Calls.Load(), calls)
		}
	}
}

// TestLongestBatch: the body may be as long as the document allows.
func TestLongestBatch(t *testing.T) {
	s := start(t, newEnv(), Config{})
	const body = `{"boards":[{"board":"local","limit":1}]}`
	for length, status := range map[int]int{maxBoardsBody: 200, maxBoardsBody + 1: 413} {
		if a := s.do(t, "POST", "/v1/boards:batch", body+strings.Repeat(" ", length-len(body))); a.status != status {
			t.Errorf("%d bytes: %d %s, want %d", length, a.status, a.body, status)
		}
	}
}

// TestBatchWaitsForProfilesOnce: the pages of all boards ask for theirs before any has them.
func TestBatchWaitsForProfilesOnce(t *testing.T) {
	env := newEnv()
	env.Profiles.Hold = make(chan struct{})
	s := start(t, env, Config{})
	var asking sync.WaitGroup
	asking.Go(func() {
		body := `{"boards":[` + strings.Repeat(`{"board":"any","profiles":true,"limit":2},`, 7) + `{"board":"hot","profiles":true},{"board":"tiny","profiles":true}]}`
		if a := s.do(t, "POST", "/v1/boards:batch", body); a.status != 200 || strings.Count(a.body, `"nick":"N-m000001"`) != 9 {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
	testkit.Eventually(t, 10*time.Second, func() error {
		if n := env.Profiles.Joins.Load(); n != 9 {
			return fmt.Errorf("%d pages wait for profiles, want 9", n)
		}
		return nil
	})
	close(env.Profiles.Hold)
	asking.Wait()
}

// brokenProfiles panics.
type brokenProfiles struct{ *fixture.Profiles }

func (brokenProfiles) Join(context.Context, []string, [][]byte) (int, func() bool) {
	panic("no such profile")
}

// TestPanicInABatch: it is an answer, and not the end of the process.
func TestPanicInABatch(t *testing.T) {
	env := newEnv()
	cfg := env.config()
	cfg.Profiles = brokenProfiles{env.Profiles}
	ctx := requestCtx("/v1/boards:batch")
	ctx.Request.Header.SetMethod("POST")
	ctx.Request.SetBodyString(`{"boards":[{"board":"any","profiles":true},{"board":"tiny"}]}`)
	serverOf(t, cfg).handle(ctx)
	if ctx.Response.StatusCode() != 500 {
		t.Errorf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
	}
}

// TestBatchWithoutRedis: what is here is answered all the same.
func TestBatchWithoutRedis(t *testing.T) {
	env := newEnv()
	env.log = slog.New(slog.DiscardHandler) // Redis fails on purpose
	env.Origin.FailWith(rankcache.ErrUnavailable)
	s := start(t, env, Config{})
	a := s.do(t, "POST", "/v1/boards:batch", `{"boards":[{"board":"any"},{"board":"local","limit":1},{"board":"hot","limit":1,"me":"m001000"}]}`)
	var got struct {
		Boards []struct {
			Page    *pageBody
			Problem struct{ Code string }
		}
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || len(got.Boards) != 3 {
		t.Fatal(err, a.body)
	}
	if b := got.Boards[0]; b.Page != nil || b.Problem.Code != "origin_unavailable" {
		t.Errorf("Redis's board: %+v", b)
	}
	if b := got.Boards[1]; b.Page == nil || b.Page.Source != "local" || len(b.Page.Entries) != 1 {
		t.Errorf("local board: %+v", b)
	}
	if b := got.Boards[2]; b.Page == nil || b.Page.Me != nil || !strings.Contains(a.body, `"me":null,"me_error":"origin_unavailable"`) {
		t.Errorf("hot board: %s", a.body)
	}
}
