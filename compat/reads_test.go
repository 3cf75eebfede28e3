package compat

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/internal/testkit/fixture"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/sidecar/httpapi"
)

// classes have boards of the fixture: one that is whole here, one in Redis, and their groups.
const classes = `
classes:
- {name: local, title: Whole here, board: local, period: none, ids: {act: 1, rank: 1}, group: tiny, top: 500}
- {name: tiny, board: tiny, period: none, ids: {act: 1, rank: 2}}
- {name: far, board: "far:{zone}", period: none, ids: {act: 1, rank: 3}}
- {name: hourly, title: Hours, board: "hourly:{zone}:{period}", period: 1h, keep: 24h, grace: 10s, ids: {act: 2, rank: 1}}
- {name: two, board: "two:{x}:{y}", period: none}
- {name: square, board: "square:{period}:{y}:{x}", period: day, keep: 72h, tz: Asia/Shanghai}
- {name: master_luck_day, board: "luck:{period}", period: day, keep: 72h}
- {name: play, board: "play:{zone}", period: none, ops: [incr], ids: {act: 4, rank: 1}, group: play-teams, top: 5, feeds: [{class: play-teams, by: team}, {class: play-members, dims: {team: team}}]}
- {name: play-teams, board: "playteams:{zone}", period: none, ops: [incr]}
- {name: play-members, board: "playmembers:{team}", period: none, ops: [incr]}
- {name: ladder, board: "ladder:{period}", ids: {act: 3, rank: 1}, seasons: [{tag: s1, from: 2026-11-01T00:00:00Z, to: 2026-11-23T10:00:00Z}, {tag: s2, from: 2026-12-01T00:00:00Z, to: 2026-12-22T00:00:00Z}]}
`

var now = time.Date(2026, 11, 23, 10, 30, 0, 0, time.UTC)

func newReads(t testing.TB, env *fixture.Env, board rankcache.BoardID) *Reads {
	t.Helper()
	file, err := rooms.Parse([]byte(classes))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := sidecar.NewReader(sidecar.Config{Tiers: fixture.Tiers(fixture.Rooms), Boards: fixture.Boards[sidecar.Board]{"local": env.Local, "tiny": env.Tiny},
		Hot: env.Hot, Origin: env.Origin, Profiles: env.Profiles}, nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := NewReads(Config{Reader: reader, Profiles: reader.Profiles(), Problem: httpapi.ProblemOf, Classes: func() *rooms.File { return file }, Board: board, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// ask returns the status and the body of an answer.
func ask(t testing.TB, h *Reads, method, target, body string) (int, string) {
	t.Helper()
	path, query, _ := strings.Cut(target, "?")
	answer, p, ours := h.Answer(t.Context(), method, path, query, []byte(body))
	switch {
	case !ours:
		return 0, ""
	case answer == nil:
		return p.Status, render(p)
	case p != nil:
		return p.Status, string(answer)
	}
	return 200, string(answer)
}

// render returns the JSON of a problem.
func render(p *httpserve.Problem) string {
	w := httptest.NewRecorder()
	p.Write(w)
	return w.Body.String()
}

func TestAnswers(t *testing.T) {
	h := newReads(t, fixture.New(), "local")
	for _, c := range []struct {
		target, body string
		status       int
		want         string
	}{
		{"/compat/rank/list", `{"actId":1,"rankObj":{"rankId":1},"start":1,"limit":1,"tid":"m000004","needDataFilter":["INFO"]}`, 200,
			`"rank_name":"Whole here","rank_list":[{"rank":2,"member_id":"m000001","score":973999,"info":{"nick":"N-m000001","v":0}}],"rank_my":{"rank":5,"member_id":"m000004","score":973996,"info":{`},
		{"/compat/rank/list", `{"actId":"1","rankObj":{"rankId":"1"},"limit":2,"needDataFilter":["ALL_GROUP"]}`, 200,
			`"rank_list":[],"group_rank_list":[{"rank":1,"member_id":"m000000","score":7003},{`},
		{"/compat/rank/list", `{"actId":1,"rankObj":{"rankId":1},"limit":1,"groups":["m000001"],"needDataFilter":["RAW","SPEC_GROUP"]}`, 200,
			`"group_rank_list":[{"rank":2,"member_id":"m000001","score":7002}]`},
		{"/compat/rank/list", `{"actId":1,"rankObj":{"rankId":3,"objId":9},"limit":1,"need_total":true,"needDataFilter":["RAW"]}`, 200, `"rankObj":{"rankId":3,"objId":"9"},"rank_name":"far","rank_list":[{"rank":1,"member_id":"m000000","score":13000}],"rank_total":1000`},
		{"/compat/rank/list", `{"actId":1,"rankObj":{"rankId":1},"limit":500}`, 400, `"argument":"limit"`},
		{"/compat/rank/list", `{"actId":1,"rankObj":{"rankId":1},"start":-1}`, 400, `"argument":"start"`},
		{"/compat/rank/list", `{"actId":1,"rankObj":{"rankId":1},"order_type":2}`, 400, `"argument":"order_type"`},
		{"/compat/rank/list", `{"actId":1,"rankObj":{"rankId":1},"xyz":1}`, 422, `"code":"not_supported","argument":"xyz"`},
		{"/compat/rank/list", `{"actId":1,"rankObj":{"rankId":1},"needDataFilter":["SOME"]}`, 400, `"argument":"needDataFilter"`},
		{"/compat/rank/list", `{"actId":1,"rankObj":{"rankId":2},"needDataFilter":["ALL_GROUP"]}`, 422, `"argument":"ALL_GROUP"`},
		{"/compat/rank/list", `{"actId":1,"rankObj":{"rankId":1},"groups":["1"],"needDataFilter":["SPEC_GROUP","ALL_GROUP"]}`, 400, `"argument":"needDataFilter"`},
		{"/compat/rank/list", `{"actId":1,"rankObj":{"rankId":2},"groups":["1"]}`, 422, `"argument":"SPEC_GROUP"`},
		{"/compat/rank/list", `{"actId":1,"rankObj":{"rankId":1},"needDataFilter":["SPEC_GROUP"]}`, 400, `"argument":"groups"`},
		{"/compat/rank/list", `{"actId":1,"rankObj":{"rankId":1},"groups":["1"],"needDataFilter":["RAW"]}`, 400, `"argument":"groups"`},
		{"/compat/rank/list", `{"actId":1,"rankObj":{"rankId":1},"needDataFilter":["SPEC_GROUP"],"groups":[1,2,3,4,5,6,7,8,9,10,11]}`, 400, `"argument":"groups"`},
		{"/compat/rank/list", `{"actId":1,"rankObj":{"rankId":1,"objId":"9"}}`, 400, `"argument":"objId"`},
		{"/compat/rank/list", `{"actId":1,"rankObj":{"rankId":3}}`, 400, `"argument":"objId"`},
		{"/compat/rank/list", `{"actId":9,"rankObj":{"rankId":1}}`, 404, `"code":"unknown_class"`},
		{"/compat/rank/list", `{"actId":0,"rankObj":{"rankId":0}}`, 404, `"code":"unknown_class"`},
		{"/compat/rank/list", `{"actId":-1,"rankObj":{"rankId":1}}`, 400, `"argument":"actId"`},
		{"/compat/rank/list", `{} {}`, 400, `after top-level value`},
		{"/compat/rank/list", `{"tid":"` + strings.Repeat("x", 64<<10) + `"}`, 400, `at most 65536 bytes`},
		{"/compat/getScore", `{"rank_name":"hot","rank_item":"m000001","score":1,"msg_id":"x"}`, 200, `"data":{"rank_item":"m000001","score":`},
		{"/compat/getScore", `{"rank_name":"two","rank_item":"m000001"}`, 400, `"message":"bad_argument: rank_type: class two has the dimensions`},
		{"/compat/getScore", `{"rank_name":"shut","rank_item":"m000001"}`, 403, `{"code":403,"errcode":403,"message":"blocked: `},
		{"/compat/getScore", `{"rank_name":"a b","rank_item":"m000001"}`, 400, `"data":null}`},
		{"/compat/getScore", `{"rank_name":"local","rank_item":""}`, 400, `rank_item`},
		{"/compat/getScore", `{"rank_name":"local","rank_item":"\ud800"}`, 400, `surrogate`},
		{"/compat/getScore", `{"rank_name":"local","rank_item":"a","rank_item":"b"}`, 400, `rank_item`},
		{"/compat/topScore", `{"rank_name":"local","rank_type":"9"}`, 400, `rank_type`},
		{"/compat/topScore", `{"rank_name":"local","limit":501}`, 400, `limit`},
		{"/compat/rank/list", `{"actId":3,"rankObj":{"rankId":1},"limit":1}`, 404, `"code":"no_period","detail":"no season runs at 2026-11-23T10:30:00Z: season s2 begins at 2026-12-01T00:00:00Z"`},
		{"/compat/rank/list", `{"actId":3,"rankObj":{"rankId":1},"limit":1,"t_time":1795000000}`, 200, `"locked":"locking"`},
		{"/compat/getScore", `{"rank_name":"ladder","rank_item":"m000001"}`, 404, `"message":"no_period: no season runs`},
		{"/compat/other", `{}`, 0, ""},
	} {
		if status, body := ask(t, h, "POST", c.target, c.body); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %.200s\ngot  %d %.400s\nwant %d with %s", c.target, c.body, status, body, c.status, c.want)
		}
	}
}

func TestScores(t *testing.T) {
	h, other := newReads(t, fixture.New(), "local"), newReads(t, fixture.New(), "")
	for _, c := range []struct {
		h      *Reads
		target string
		status int
		want   string
	}{
		{h, "/v1/scores?limit=1&start=2", 200, `{"board":"local","data":[{"user_id":"m000002","user_name":"N-m000002","rank":3,"score":973998}],"scores":[{"member":"m000002","score":973998,"rank":3}],"total":57000}`},
		{h, "/v1/scores?board=tiny", 200, `"scores":[{"member":"m000000","score":7003,"rank":1},`},
		{h, "/v1/scores/m%300000%30", 200, `{"member":"m000000","score":974000,"rank":1,"user_info":{"user_id":"m000000","user_name":"N-m000000","rank":1,"score":974000}}`},
		{h, "/v1/scores/xnobody", 200, `{"member":"xnobody","score":0,"rank":0,"user_info":{"user_id":"xnobody","user_name":"","rank":0,"score":0}}`},
		{h, "/v1/scores/", 400, `"argument":"member"`},
		{h, "/v1/scores/a%zz", 400, `"argument":"member"`},
		{h, "/v1/scores?limit=501", 400, `"argument":"limit"`},
		{h, "/v1/scores?me=x", 422, `"argument":"me"`},
		{h, "/v1/scores/x?limit=1", 422, `"argument":"limit"`},
		{h, "/v1/scores?board=%20", 400, `"argument":"board"`},
		{h, "/v1/scores?board=%zz", 400, `"argument":"query"`},
		{h, "/v1/scoresx", 0, ""},
		{other, "/v1/scores", 404, `?board=, or start the sidecar with --compat-board`},
		{other, "/v1/scores/m000000", 404, `"code":"unknown_path"`},
		{other, "/v1/scores/m000000?board=local", 200, `{"member":"m000000","score":974000,"rank":1,"user_info":{"user_id":"m000000","user_name":"N-m000000","rank":1,"score":974000}}`},
	} {
		if status, body := ask(t, c.h, "GET", c.target, ""); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s\ngot  %d %.400s\nwant %d with %s", c.target, status, body, c.status, c.want)
		}
	}
	for target, method := range map[string]string{"/v1/scores": "POST", "/v1/scores/m": "DELETE", "/compat/rank/list": "GET", "/compat/getScore": "PUT"} {
		if status, body := ask(t, h, method, target, ""); status != 405 {
			t.Errorf("%s %s: %d %s", method, target, status, body)
		}
	}
	if _, err := NewReads(Config{Board: "a b"}); err == nil {
		t.Error("a board that can't be one is configured")
	}
}

// TestPeriodOfATime: t_time chooses the period.
func TestPeriodOfATime(t *testing.T) {
	h := newReads(t, fixture.New(), "")
	end := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC) // of the period before
	for _, c := range []struct {
		at     string
		clock  time.Time
		status int
		want   string
	}{
		{"", now, 200, `"locked":"nolock"`},
		{fmt.Sprint(now.Unix()), now, 200, `"locked":"nolock"`},
		{fmt.Sprintf("%q", fmt.Sprint(end.Unix()-1)), now, 200, `"locked":"locking"`},
		{fmt.Sprint(end.Unix() - 1), end.Add(25 * time.Hour), 404, `"code":"unknown_period"`},
		{"99999999999999", now, 400, `"argument":"t_time"`},
		{"-1", now, 400, `"argument":"t_time"`},
	} {
		h.cfg.Now = func() time.Time { return c.clock }
		if status, answer := askHourly(t, h, c.at); status != c.status || !strings.Contains(answer, c.want) {
			t.Errorf("%s at %v: %d %s, want %d with %s", c.at, c.clock, status, answer, c.status, c.want)
		}
	}
}

// askHourly asks for the list of a period of the class hourly.
func askHourly(t *testing.T, h *Reads, at string) (int, string) {
	t.Helper()
	body := `{"actId":2,"rankObj":{"rankId":1,"objId":"7"},"limit":1`
	if at != "" {
		body += `,"t_time":` + at
	}
	return ask(t, h, "POST", "/compat/rank/list", body+"}")
}

// TestUnknownName: a name that is no class and no board is 404; one that the rooms file names may be empty.
func TestUnknownName(t *testing.T) {
	env := fixture.New()
	h := newReads(t, env, "")
	for n, want := range map[int64]int{0: 404, 3: 200} {
		env.Origin.N.Store(n)
		env.Origin.Seq.Store(uint64(n))
		for path, body := range map[string]string{"getScore": `{"rank_name":"nothing","rank_item":"m000001"}`, "topScore": `{"rank_name":"nothing"}`} {
			if status, answer := ask(t, h, "POST", "/compat/"+path, body); status != want || want == 404 && !strings.Contains(answer, "unknown_class: rank_name nothing is no class") {
				t.Errorf("%s of %d members: %d %s", path, n, status, answer)
			}
		}
		if status, answer := ask(t, h, "POST", "/compat/topScore", `{"rank_name":"far:9"}`); status != 200 {
			t.Error("a board of a class:", status, answer)
		}
	}
}

// TestOnlyRedisLocks: a board is locked when Redis tells that it is closed, whatever the clock
// says: until then a command that came in time changes it.
func TestOnlyRedisLocks(t *testing.T) {
	env := fixture.New()
	h := newReads(t, env, "")
	end := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		after time.Duration // the end of the period; the grace is 10 s
		life  rankcache.Life
		want  string
	}{
		{-time.Second, rankcache.LifeOpen, "nolock"}, {0, rankcache.LifeOpen, "locking"}, {23 * time.Hour, rankcache.LifeOpen, "locking"},
		{-time.Second, rankcache.LifeClosing, "locking"}, {time.Hour, rankcache.LifeClosing, "locking"},
		{-time.Second, rankcache.LifeClosed, "locked"}, {time.Second, rankcache.LifeFinal, "locked"},
	} {
		env.Origin.Life = c.life
		h.cfg.Now = func() time.Time { return end.Add(c.after) }
		if status, answer := askHourly(t, h, fmt.Sprint(end.Unix()-1)); status != 200 || !strings.Contains(answer, `"locked":"`+c.want+`"`) {
			t.Errorf("%v after the end, life %v: %d %s, want %s", c.after, c.life, status, answer, c.want)
		}
	}
}

// TestTrimmedMember has its score with rank 0. Where it can't be read, a list from memory comes
// without it.
func TestTrimmedMember(t *testing.T) {
	env := fixture.New()
	h := newReads(t, env, "local")
	tiers := fixture.Tiers(fixture.Rooms + "classes:\n- {name: local, board: local, period: none, ops: [incr], trim: 10, ties: first}\n")
	var err error
	if h.cfg.Reader, err = sidecar.NewReader(sidecar.Config{Tiers: tiers, Boards: fixture.Boards[sidecar.Board]{"local": env.Local}, Hot: env.Hot, Origin: env.Origin}, nil); err != nil {
		t.Fatal(err)
	}
	env.Origin.Trimmed.Store("out", 5.25)
	const list = `{"actId":1,"rankObj":{"rankId":1},"limit":1,"tid":%q,"needDataFilter":["RAW"]}`
	expect := func(path, body string, status int, want string) {
		t.Helper()
		method := "POST"
		if body == "" {
			method = "GET"
		}
		if got, answer := ask(t, h, method, path, body); got != status || !strings.Contains(answer, want) {
			t.Errorf("%s %s: %d %s, want %d with %s", path, body, got, answer, status, want)
		}
	}
	expect("/compat/rank/list", fmt.Sprintf(list, "out"), 200, `"rank_my":{"rank":0,"member_id":"out","score":5},`)
	expect("/compat/getScore", `{"rank_name":"local","rank_item":"out"}`, 200, `{"rank_item":"out","score":5,"rank":0}`)
	expect("/v1/scores/out", "", 200, `{"member":"out","score":5,"rank":0,"user_info":`)
	env.Origin.FailWith(fmt.Errorf("%w: down", rankcache.ErrUnavailable))
	expect("/compat/rank/list", fmt.Sprintf(list, "other"), 200, `"score":974000}],"group_rank_list"`)
	expect("/compat/getScore", `{"rank_name":"local","rank_item":"other"}`, 503, `origin_unavailable`)
}

// lowered answers with all scores lower by so much.
type lowered struct {
	Reader
	by float64
}

func (l lowered) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	l.Reader.Read(ctx, qs, as)
	for i := range as {
		as[i].Entries = slices.Clone(as[i].Entries)
		for j := range as[i].Entries {
			as[i].Entries[j].Score -= l.by
		}
		for j := range as[i].Own {
			as[i].Own[j].Score -= l.by
		}
	}
}

// TestScoresBeyondUnsignedNumbers are shown as the nearest one, with a code of their row: the others are served.
func TestScoresBeyondUnsignedNumbers(t *testing.T) {
	env := fixture.New()
	h := newReads(t, env, "")
	env.Origin.N.Store(3)
	h.cfg.Reader = lowered{h.cfg.Reader, 12001.5}
	const body = `{"actId":1,"rankObj":{"rankId":3,"objId":"9"},"limit":3,"tid":"m000002","needDataFilter":["RAW"]}`
	want := `"rank_list":[{"rank":1,"member_id":"m000000","score":1},{"rank":2,"member_id":"m000001","score":0},{"rank":3,"member_id":"m000002","score":0,"errCode":422}],"rank_my":{"rank":3,"member_id":"m000002","score":0,"errCode":422},`
	if status, answer := ask(t, h, "POST", "/compat/rank/list", body); status != 200 || !strings.Contains(answer, want) {
		t.Error(status, answer)
	}
	h.cfg.Reader = lowered{h.cfg.Reader, -1e20}
	if status, answer := ask(t, h, "POST", "/compat/rank/list", body); status != 200 || !strings.Contains(answer, `{"rank":1,"member_id":"m000000","score":18446744073709551615,"errCode":422}`) {
		t.Error(status, answer)
	}
}

// TestEmptyBoardIsLocked once no order id of its period can come any more: nothing closes it in Redis.
func TestEmptyBoardIsLocked(t *testing.T) {
	env := fixture.New()
	env.Origin.N.Store(0)
	h := newReads(t, env, "")
	end := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	for after, want := range map[time.Duration]string{-time.Second: "nolock", 0: "locking", time.Hour: "locking", time.Hour + 10*time.Second: "locked", 23 * time.Hour: "locked"} {
		h.cfg.Now = func() time.Time { return end.Add(after) }
		if status, answer := askHourly(t, h, fmt.Sprint(end.Unix()-1)); status != 200 || !strings.Contains(answer, `"locked":"`+want+`"`) {
			t.Errorf("%v after the end: %d %s, want %s", after, status, answer, want)
		}
	}
}

// TestNumbersMayBeStrings in all fields, as protobuf writes some of them.
func TestNumbersMayBeStrings(t *testing.T) {
	h := newReads(t, fixture.New(), "")
	for path, bodies := range map[string][2]string{
		"/compat/rank/list": {`{"actId":1,"rankObj":{"rankId":1},"start":2,"limit":3,"order_type":1}`, `{"actId":"1","rankObj":{"rankId":"1"},"start":"2","limit":"3","order_type":"1"}`},
		"/compat/topScore":  {`{"rank_name":"local","limit":2}`, `{"rank_name":"local","limit":"2"}`},
	} {
		status, want := ask(t, h, "POST", path, bodies[0])
		if again, got := ask(t, h, "POST", path, bodies[1]); status != 200 || again != 200 || got != want {
			t.Errorf("%s: %d %s, with strings %d %s", path, status, want, again, got)
		}
	}
}

// FuzzAnswer: no request makes the handler panic or answer what is not JSON.
func FuzzAnswer(f *testing.F) {
	f.Add("/compat/rank/list", "", `{"actId":1,"rankObj":{"rankId":1,"objId":""},"start":0,"limit":9,"tid":"m","needDataFilter":["RAW","INFO","ALL_GROUP"],"t_time":"1"}`)
	f.Add("/compat/getScore", "", `{"rank_name":"local","rank_type":"","rank_item":"m000001"}`)
	f.Add("/compat/topScore", "", `{"rank_name":"far","rank_type":9,"limit":3}`)
	f.Add("/v1/scores", "board=local&start=1&limit=2", "")
	f.Add("/v1/scores/%61", "board=tiny", "")
	h := newReads(f, fixture.New(), "tiny")
	f.Fuzz(func(t *testing.T, path, query, body string) {
		for _, method := range []string{"GET", "POST"} {
			answer, p, ours := h.Answer(t.Context(), method, path, query, []byte(body))
			if ours && answer == nil && p == nil || answer != nil && !json.Valid(answer) || p != nil && !json.Valid([]byte(render(p))) {
				t.Errorf("%s %q?%q %q: %q, %+v, %t", method, path, query, body, answer, p, ours)
			}
		}
	})
}
