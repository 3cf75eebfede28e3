package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/rooms"
)

const changeClasses = `
classes:
- {name: gift, board: "gift:{zone}:{period}", period: day, ids: {act: 1, rank: 1}}
- {name: all, board: all, period: none, ids: {act: 1, rank: 2}, score: integer}
- {name: notes, board: notes, period: none, ids: {act: 1, rank: 4}, data: true}
- {name: master_luck_day, board: "luck:{period}", period: day}
- {name: laps, board: laps, period: none, ids: {act: 1, rank: 3}, ops: [best]}
`

// next is the writer's handler: it keeps what it gets, and answers.
type next struct {
	status             int
	answer             string
	path, token, posts string
}

func (n *next) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	n.path, n.token, n.posts = r.URL.Path, r.Header.Get("Authorization"), string(body)
	w.WriteHeader(n.status)
	_, _ = io.WriteString(w, n.answer)
}

func newChanges(t testing.TB, n *next) *Changes {
	t.Helper()
	file, err := rooms.Parse([]byte(changeClasses))
	if err != nil {
		t.Fatal(err)
	}
	return NewChanges(n, func() *rooms.File { return file }, redisBoards{"1_2_3": true}, "")
}

// redisBoards are the boards that Redis has; of the board "down" it does not answer.
type redisBoards map[rankcache.BoardID]bool

func (b redisBoards) Read(_ context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	for i, q := range qs {
		if as[i].Begin(&q, rankcache.SourceRedis, rankcache.Stamp{}, time.Time{}); b[q.Board] {
			as[i].Members = 1
		}
		if q.Board == "down" {
			as[i].Fail(rankcache.ErrUnavailable)
		}
	}
}

func send(h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestTranslation checks what the writer is asked for, and what the caller is answered.
func TestTranslation(t *testing.T) {
	const one, gift = `{"results":[{"result":{"score":41.5}}]}`, `"actId":1,"rankObj":{"rankId":1,"objId":7}`
	for _, c := range []struct {
		path, body, token  string
		status             int
		answer             string
		posts, wants, code string
	}{
		{"/compat/rank/update", `{` + gift + `,"appid":3,"xcode":"hush","msgId":12,"t_time":1700000000,"data":[{"member_id":8,"score":"41.5","data":""}]}`, "Bearer hush", 200, one,
			`{"commands":[{"class":"gift","dims":{"zone":"7"},"member":"8","op":"set","score":41,"order":"12/8","at":1700000000000}]}`,
			`{"actId":1,"rankObj":{"rankId":1,"objId":"7"},"data":[{"member_id":"8","score":41,"errCode":0,"result_score":41}]}`, ""},
		{"/compat/rank/update", `{` + gift + `,"update_type":1,"plusOrminus":1,"msgId":"m","data":[{"member_id":"u","score":2},{"member_id":"v","score":0}]}`, "", 200,
			`{"results":[{"result":{"score":-2}},{"problem":{"status":422,"code":"score_range","argument":"x","detail":"d"}}]}`,
			`{"commands":[{"class":"gift","dims":{"zone":"7"},"member":"u","op":"incr","delta":-2,"order":"m/u"},{"class":"gift","dims":{"zone":"7"},"member":"v","op":"incr","delta":-0,"order":"m/v"}]}`,
			`"data":[{"member_id":"u","score":2,"errCode":0,"result_score":0},{"member_id":"v","score":0,"errCode":422,"errMsg":"score_range: x: d","result_score":0}]}`, ""},
		{"/compat/rank/update", `{"actId":1,"rankObj":{"rankId":3},"msgId":"m","data":[{"member_id":"u","score":42}]}`, "", 200, one,
			`{"commands":[{"class":"laps","member":"u","op":"best","score":42,"order":"m/u"}]}`, `"result_score":41}`, ""},
		{"/compat/rank/delete", `{"actId":1,"rankObj":{"rankId":2},"msgId":"m","data":[{"member_id":"u"}]}`, "", 200, `{"results":[{"result":{}}]}`,
			`{"commands":[{"class":"all","member":"u","op":"delete","order":"m/u"}]}`, `{}`, ""},
		{"/compat/rank/update", `{` + gift + `,"msgId":"m","data":[{"member_id":"u","score":2}]}`, "", 401, `{"code":"token_required"}`, `"u"`, `{"code":"token_required"}`, ""},
		{"/compat/rank/update", `{` + gift + `,"msgId":"m","data":[{"member_id":"u","score":2}]}`, "", 200, `{"results":[]}`, `"u"`, "", "internal"},
		{"/compat/rank/update", `{` + gift + `,"msgId":"m","data":[{"member_id":"u","score":2}]}`, "", 200, `{"results":[{}]}`, `"u"`, "", "internal"},
		{"/compat/incrScore", `{"rank_name":"all","rank_item":"u","score":1.5,"msg_id":"i"}`, "", 200, `{"score":3}`,
			`{"class":"all","member":"u","op":"incr","delta":1.5,"order":"i/u"}`, `{"code":0,"errcode":0,"message":"ok","errmsg":"ok","data":{"rank_item":"u","score":3,"status":true}}`, ""},
		{"/compat/incrScore", `{"rank_name":"1_2_3","rank_item":"u","score":-1,"msg_id":"i"}`, "", 503, `{"code":"origin_unavailable","status":503}`,
			`{"board":"1_2_3","member":"u","op":"incr","delta":-1,"order":"i/u"}`, `{"code":503,"errcode":503,"message":"origin_unavailable","errmsg":"origin_unavailable","data":null}`, ""},
	} {
		n := &next{status: c.status, answer: c.answer}
		w := send(newChanges(t, n), "POST", c.path, c.body)
		if !strings.Contains(n.posts, c.posts) || n.token != c.token || !strings.Contains(w.Body.String(), c.wants) || !strings.Contains(w.Body.String(), c.code) {
			t.Errorf("%s %s\nposts %s with %q\nwant  %s\nanswers %d %s\nwant    %s", c.path, c.body, n.posts, n.token, c.posts, w.Code, w.Body, c.wants)
		}
	}
}

func TestRefusals(t *testing.T) {
	h := newChanges(t, &next{status: 200, answer: `{}`})
	row := func(more string) string {
		return `{"actId":1,"rankObj":{"rankId":1,"objId":"7"},` + more + `}`
	}
	for _, c := range []struct {
		path, body     string
		status         int
		argument, code string
	}{
		{"update", row(`"data":[]`), 400, "data", "bad_argument"},
		{"update", row(`"data":[` + strings.Repeat(`{"member_id":"a","score":1},`, 99) + `{"member_id":"b","score":1}]`), 400, "data", "bad_argument"},
		{"update", row(`"data":[{"member_id":"a"}]`), 400, "score", "bad_argument"},
		{"update", row(`"data":[{"member_id":"a","score":-1}]`), 422, "score", "not_supported"},
		{"update", row(`"data":[{"member_id":"a","score":9007199254740993}]`), 422, "score", "not_supported"},
		{"update", row(`"data":[{"member_id":"a","score":1e999}]`), 422, "score", "not_supported"},
		{"update", row(`"data":[{"member_id":"a","score":"NaN"}]`), 400, "score", "bad_argument"},
		{"update", row(`"data":[{"member_id":"a","score":1},{"member_id":"a","score":1}]`), 400, "member_id", "bad_argument"},
		{"update", row(`"data":[{"member_id":"","score":1}]`), 400, "member_id", "bad_argument"},
		{"update", row(`"data":[{"member_id":"a","score":1}],"plusOrminus":1`), 422, "plusOrminus", "not_supported"},
		{"update", row(`"data":[{"member_id":"a","score":1}],"plusOrminus":2`), 400, "plusOrminus", "bad_argument"},
		{"update", row(`"data":[{"member_id":"a","score":1}],"update_type":2`), 400, "update_type", "bad_argument"},
		{"update", row(`"data":[{"member_id":"a","score":1}],"msgId":"` + strings.Repeat("x", 200) + `"`), 400, "msgId", "bad_argument"},
		{"update", row(`"data":[{"member_id":"a","score":1}],"rank_ext":1`), 422, "rank_ext", "not_supported"},
		{"update", `{"actId":1,"rankObj":{"rankId":2,"objId":"7"},"data":[{"member_id":"a","score":1}]}`, 400, "objId", "bad_argument"},
		{"update", `{"actId":9,"rankObj":{"rankId":2}}`, 404, "", "unknown_class"},
		{"update", strings.Repeat(" ", 65<<10), 413, "", "body_too_large"},
		{"update", "{", 400, "json", "bad_argument"},
		{"update", `{"xcode":` + "\"\xff\"}", 400, "json", "bad_argument"},
		{"update", row(`"data":[{"member_id":"\ud800","score":1}]`), 400, "json", "bad_argument"},
		{"update", row(`"data":[{"member_id":"a","score":1,"score":2}]`), 400, "data.0.score", "bad_argument"},
		{"update", row(`"data":[{"member_id":"a","score":1,"scor":2}]`), 422, "data.0.scor", "not_supported"},
		{"delete", row(`"data":[{"member_id":"a"}],"update_type":1`), 422, "update_type", "not_supported"},
	} {
		w := send(h, "POST", "/compat/rank/"+c.path, c.body)
		var p httpserve.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != c.status || p.Status != c.status || p.Argument != c.argument || p.Code != c.code {
			t.Errorf("%s %.200s: %d %s, want %d %s of %q", c.path, c.body, w.Code, w.Body, c.status, c.code, c.argument)
		}
	}
	if w := send(h, "GET", "/compat/rank/update", ""); w.Code != 405 || w.Header().Get("Allow") != "POST" {
		t.Error("GET:", w.Code, w.Header())
	}
	for body, want := range map[string]string{
		`{"rank_name":"all","rank_item":"u"}`:                             "bad_argument: score: is missing",
		`{"rank_name":"all","rank_item":"","score":1}`:                    "rank_item",
		`{"rank_name":"all","rank_type":"7","rank_item":"u","score":1}`:   "rank_type",
		`{"rank_name":"1_2_3","rank_type":"7","rank_item":"u","score":1}`: "not_supported: rank_type",
		`{"rank_name":"a b","rank_item":"u","score":1}`:                   "rank_name",
	} {
		if w := send(h, "POST", "/compat/incrScore", body); w.Code < 400 || !strings.HasPrefix(w.Body.String(), `{"code":4`) || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", body, w.Code, w.Body, want)
		}
	}
}

// TestEveryRequestIsAnOrder: without a message id two requests are two changes, and a
// header's token is kept.
func TestEveryRequestIsAnOrder(t *testing.T) {
	n := &next{status: 200, answer: `{"results":[{"result":{"score":1}}]}`}
	h := newChanges(t, n)
	const body = `{"actId":1,"rankObj":{"rankId":2},"xcode":"body","data":[{"member_id":"u","score":1}]}`
	orders := map[string]bool{}
	for range 2 {
		send(h, "POST", "/compat/rank/update", body, "Authorization", "Bearer header")
		orders[regexp.MustCompile(`"order":"[^"]+/u"`).FindString(n.posts)] = true
	}
	if len(orders) != 2 || orders[""] || n.token != "Bearer header" || n.path != "/v1/scores:batch" {
		t.Error(orders, n)
	}
	if w := send(h, "POST", "/v1/scores", "as it is"); n.posts != "as it is" || n.path != "/v1/scores" || w.Code != 200 {
		t.Error("another path:", n, w.Code)
	}
}

// TestNumbersOfChangesMayBeStrings: in all fields, as protobuf writes some of them.
func TestNumbersOfChangesMayBeStrings(t *testing.T) {
	n := &next{status: 200, answer: `{"results":[{"result":{"score":1}}],"score":2}`}
	h := newChanges(t, n)
	for path, bodies := range map[string][2]string{
		"/compat/rank/update": {`{"actId":1,"rankObj":{"rankId":2},"msgId":7,"t_time":9,"update_type":1,"plusOrminus":1,"data":[{"member_id":5,"score":1}]}`,
			`{"actId":"1","rankObj":{"rankId":"2"},"msgId":"7","t_time":"9","update_type":"1","plusOrminus":"1","data":[{"member_id":"5","score":"1"}]}`},
		"/compat/incrScore": {`{"rank_name":"all","rank_item":"u","score":-1.5,"msg_id":"m"}`, `{"rank_name":"all","rank_item":"u","score":"-1.5","msg_id":"m"}`},
	} {
		n.posts = ""
		first := send(h, "POST", path, bodies[0])
		want := n.posts
		if again := send(h, "POST", path, bodies[1]); first.Code != 200 || again.Code != 200 || n.posts != want {
			t.Errorf("%s: %d posts %s, with strings %d %s posts %s", path, first.Code, want, again.Code, again.Body, n.posts)
		}
	}
	for _, score := range []string{`"x"`, `"1e999"`, `1e999`, `"NaN"`, `"Infinity"`, `"0x10"`, `""`, `null`, `"1_0"`, `[]`} {
		n.posts = ""
		if w := send(h, "POST", "/compat/incrScore", `{"rank_name":"all","rank_item":"u","score":`+score+`}`); w.Code != 400 || n.posts != "" {
			t.Errorf("score %s: %d %s", score, w.Code, w.Body)
		}
		if w := send(h, "POST", "/compat/rank/update", `{"actId":1,"rankObj":{"rankId":2},"data":[{"member_id":"u","score":`+score+`}]}`); w.Code != 400 && w.Code != 422 || n.posts != "" {
			t.Errorf("score %s of an update: %d %s", score, w.Code, w.Body)
		}
	}
}

// FuzzRequests: no body makes the handler panic, and what it posts is JSON.
func FuzzRequests(f *testing.F) {
	f.Add(`{"actId":1,"rankObj":{"rankId":1,"objId":"7"},"xcode":"t","data":[{"member_id":"u","score":"1.5"}],"update_type":1,"plusOrminus":1,"msgId":"m","t_time":1700000000}`)
	f.Add(`{"rank_name":"all","rank_type":"","rank_item":"u","score":1,"msg_id":"m"}`)
	n := &next{status: 200, answer: `{"results":[{"result":{"score":1}}],"score":2}`}
	h := newChanges(f, n)
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range []string{"/compat/rank/update", "/compat/rank/delete", "/compat/incrScore"} {
			n.posts = "{}"
			w := send(h, "POST", path, body)
			if !json.Valid([]byte(n.posts)) || !json.Valid(bytes.TrimSpace(w.Body.Bytes())) {
				t.Errorf("%s %q: posts %q, answers %q", path, body, n.posts, w.Body)
			}
		}
	})
}
