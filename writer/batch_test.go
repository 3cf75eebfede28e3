package writer

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache/internal/httpserve"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/apitest"
	"rankcache/sidecar"
	"rankcache/wire"
)

// batchAnswer is an answer of POST /v1/scores:batch.
type batchAnswer struct {
	Results []struct {
		Result *struct {
			Member    string
			Score     float64
			Seq       int
			Duplicate bool
		}
		Problem *httpserve.Problem
	}
}

func (h *fixture) postBatch(body string) *httptest.ResponseRecorder { return h.postTo("batch", body) }

func (h *fixture) postTo(verb, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, "/v1/scores:"+verb, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	h.Handler().ServeHTTP(rec, req)
	return rec
}

func batchOf(commands ...string) string { return `{"commands":[` + strings.Join(commands, ",") + `]}` }

// results returns what each command of an answer became: its score and seq, "again" for
// a repeat, or the code of its problem.
func results(t *testing.T, rec *httptest.ResponseRecorder) (words []string) {
	t.Helper()
	equal(t, rec.Body.String(), rec.Code, 200)
	var answer batchAnswer
	must(t, json.Unmarshal(rec.Body.Bytes(), &answer))
	for _, r := range answer.Results {
		switch {
		case r.Problem != nil:
			words = append(words, fmt.Sprint(r.Problem.Status, " ", r.Problem.Code))
		case r.Result.Duplicate:
			words = append(words, "again")
		default:
			words = append(words, fmt.Sprint(r.Result.Member, "=", r.Result.Score, " ", r.Result.Seq))
		}
	}
	return words
}

func TestPostBatch(t *testing.T) {
	t.Parallel()
	h := newFixture(t, testkit.Kfake(t).Addr(), nil)
	h.run(t)
	set := h.opCommand("set", "o3", "a", "score", 10)
	body := batchOf(h.command("o1", "a"), h.command("o2", "b"), set, h.command("o4", "a"), h.command("o1", "a"), h.opCommand("incr", "o2", "b", "delta", 2),
		`{"class":"none"}`, `null`, strings.Replace(h.command("o5", "a"), "{", `{"class":"none","dims":{},`, 1), h.command("o6", "b"))
	rec := h.postBatch(body)
	equal(t, "results", results(t, rec), []string{"a=1 1", "b=1 2", "a=10 3", "a=11 4", "again", "409 order_conflict",
		"400 bad_argument", "400 bad_argument", "422 board_and_class", "b=2 5"})
	equal(t, "board", h.scores(t), map[string]float64{"a": 11, "b": 2})
	equal(t, "updates", len(h.updates(t, 6)), 6)
	equal(t, "kept", len(testkit.Records(t, h.kafka, h.opts.Names.Refused, 4)), 4)
	equal(t, "counted", []int{h.count("applied"), h.count("duplicate"), h.count("refused")}, []int{5, 1, 4})

	doc, err := apitest.Load(sidecar.OpenAPI())
	must(t, err)
	must(t, doc.Check(apitest.Exchange{Method: http.MethodPost, Target: "/v1/scores:batch", RequestHeader: http.Header{"Content-Type": {"application/json"}},
		RequestBody: batchOf(h.command("o1", "a")), Status: rec.Code, Header: rec.Header(), Body: rec.Body.String()}))
}

// One order id for several members is an order of each, whose id has the member. Those of a
// problem have it too, so that one of them can be posted again.
func TestBatchOfOneOrder(t *testing.T) {
	h := quiet(t, nil)
	long := strings.Repeat("x", 120)
	body := batchOf(h.command("o1", "a"), h.command("o1", "b"), h.command("o2", "a"), h.command("o1", "a"), h.opCommand("set", "o1", "b", "score", 5),
		h.command(long, "a"), h.command(long, "a long member of a board"))
	rec := h.postBatch(body)
	equal(t, "results", results(t, rec), []string{"a=1 1", "b=1 2", "a=2 3", "again", "409 order_conflict", "a=3 4", "400 bad_argument"})
	var answer struct {
		Results []struct {
			Order  string
			Result struct{ Order string }
		}
	}
	must(t, json.Unmarshal(rec.Body.Bytes(), &answer))
	var orders []string
	for _, r := range answer.Results {
		orders = append(orders, r.Order+r.Result.Order)
	}
	equal(t, "orders", orders, []string{"o1/a", "o1/b", "o2", "o1/a", "o1/b", long + "/a", long + "/a long member of a board"})
	doc, err := apitest.Load(sidecar.OpenAPI())
	must(t, err)
	must(t, doc.Check(apitest.Exchange{Method: http.MethodPost, Target: "/v1/scores:batch", RequestHeader: http.Header{"Content-Type": {"application/json"}},
		RequestBody: body, Status: rec.Code, Header: rec.Header(), Body: rec.Body.String()}))
	equal(t, "again", results(t, h.postBatch(batchOf(h.command("o1", "b"), h.command("o1", "a")))), []string{"again", "again"})
	equal(t, "alone", h.do1(t, h.command("o1/b", "b")).Duplicate, true)
	equal(t, "board", h.scores(t), map[string]float64{"a": 3, "b": 1})
}

func TestPostDelete(t *testing.T) {
	h := quiet(t, nil)
	h.postBatch(batchOf(h.command("o1", "a"), h.command("o2", "b"), h.command("o3", "c")))
	body := fmt.Sprintf(`{"order":"clean","board":%q,"members":["a","nobody","","b","a"],"at":%d}`, h.board, h.at)
	rec := h.postTo("delete", body)
	equal(t, "results", results(t, rec), []string{"a=0 4", "nobody=0 5", "400 bad_argument", "b=0 6", "again"})
	equal(t, "board", h.scores(t), map[string]float64{"c": 1})
	h.do1(t, h.command("o4", "a"))
	equal(t, "fewer, again", results(t, h.postTo("delete", strings.Replace(body, `"a","nobody","",`, "", 1))), []string{"again", "again"})
	equal(t, "board", h.scores(t), map[string]float64{"a": 1, "c": 1})
	doc, err := apitest.Load(sidecar.OpenAPI())
	must(t, err)
	must(t, doc.Check(apitest.Exchange{Method: http.MethodPost, Target: "/v1/scores:delete", RequestHeader: http.Header{"Content-Type": {"application/json"}},
		RequestBody: body, Status: rec.Code, Header: rec.Header(), Body: rec.Body.String()}))
	for body, argument := range map[string]string{
		`{"board":"1","members":["a"]}`:                                                     "order",
		`{"order":"o","board":"1","members":[]}`:                                            "members",
		`{"order":"o","board":"1"}`:                                                         "members",
		`{"order":"o","board":"1","members":7}`:                                             "members",
		`{"order":"o","board":"1","members":["a"],"op":"incr"}`:                             "op",
		`{"order":"o","board":"1","members":["a"],"members":["b"]}`:                         "members",
		`{"order":"o","board":"1","members":["a"` + strings.Repeat(`,"a"`, maxPosts) + `]}`: "members",
	} {
		rec := h.postTo("delete", body)
		checkProblem(t, body, rec.Code, rec.Body.String(), httpserve.Problem{Status: 400, Code: "bad_argument", Argument: argument})
	}
	for _, member := range []string{"\xff", `\ud800`} {
		rec = h.postTo("delete", `{"order":"o","board":"1","members":["`+member+`"]}`)
		checkProblem(t, "not Unicode", rec.Code, rec.Body.String(), httpserve.Problem{Status: 400, Code: "bad_request"})
	}
}

func TestBatchLimits(t *testing.T) {
	h := quiet(t, nil)
	doc, err := apitest.Load(sidecar.OpenAPI())
	must(t, err)
	many := func(n int) string {
		commands := make([]string, n)
		for i := range commands {
			commands[i] = h.command(fmt.Sprint("o", i), "a")
		}
		return batchOf(commands...)
	}
	for body, want := range map[string]httpserve.Problem{
		`{`:                          {Status: 400, Code: "bad_request"},
		`[]`:                         {Status: 400, Code: "bad_request"},
		`{"commands":7}`:             {Status: 400, Code: "bad_argument", Argument: "commands"},
		`{"commands":[{}],"wait":1}`: {Status: 400, Code: "bad_argument", Argument: "wait"},
		`{"commands":null}`:          {Status: 400, Code: "bad_argument", Argument: "commands"},
		batchOf():                    {Status: 400, Code: "bad_argument", Argument: "commands"},
		many(maxPosts + 1):           {Status: 400, Code: "bad_argument", Argument: "commands"},
		strings.Repeat(" ", maxBatchLen) + batchOf(): {Status: 413, Code: "body_too_large"},
	} {
		rec := h.postBatch(body)
		checkProblem(t, body, rec.Code, rec.Body.String(), want)
		e := apitest.Exchange{Method: http.MethodPost, Target: "/v1/scores:batch", RequestBody: body}
		if err := doc.CheckRequest(e); err == nil && want.Status == 400 {
			t.Errorf("%.80s: the document takes it", body)
		}
	}
	equal(t, "board", h.scores(t), map[string]float64{})
	equal(t, "results", len(results(t, h.postBatch(many(maxPosts)))), maxPosts)
	equal(t, "board", h.scores(t), map[string]float64{"a": maxPosts})
	long := `{"order":"` + strings.Repeat("x", MaxCommandLen) + `"}`
	equal(t, "a command that is too long", results(t, h.postBatch(batchOf(long, h.command("last", "a")))), []string{"400 bad_request", fmt.Sprint("a=", maxPosts+1, " ", maxPosts+1)})
}

// A null among members is none of them, and nothing is deleted; a time is a whole number however it is written.
func TestDeleteBodies(t *testing.T) {
	for body, argument := range map[string]string{
		`{"order":"o","board":"b","members":["a",null]}`:     "members.1",
		`{"order":"o","board":"b","members":[null]}`:         "members.0",
		`{"order":"o","board":"b","members":null}`:           "members",
		`{"order":null,"board":"b","members":["a"]}`:         "order",
		`{"order":"o","board":"b","members":["a"],"at":1.5}`: "at",
	} {
		if _, err := decodeDelete([]byte(body)); err == nil || problemOf(err).Argument != argument {
			t.Errorf("%s: %v, want an error of %s", body, err, argument)
		}
	}
	commands, err := decodeDelete([]byte(`{"order":"o","board":"b","class":null,"room":null,"members":["a"],"at":1795367000000.0}`))
	if err != nil || len(commands) != 1 || !strings.Contains(string(commands[0]), `"at":1795367000000}`) {
		t.Errorf("%s, %v", commands, err)
	}
}

// Without Redis each command that could be applied is to be posted again; refused ones
// are refused for good.
func TestBatchWhileServersAreAway(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	h := quiet(t, func(o *Options) { o.Redis = redisClient(t, server.Addr()) })
	h.posts.time = 300 * time.Millisecond
	must(t, server.Stop())
	rec := h.postBatch(batchOf(h.command("o1", "a"), `{"op":"steal"}`, h.command("o2", "b"), `{}`))
	equal(t, "results", results(t, rec), []string{"503 origin_unavailable", "400 bad_argument", "503 origin_unavailable", "400 bad_argument"})
	h.posts.awaitRefused()
	equal(t, "lost", testutil.ToFloat64(h.metrics.refusedLost), 2.0)
}

// FuzzDecodeBatch looks for commands that were not in the body as they are.
func FuzzDecodeBatch(f *testing.F) {
	for _, seed := range []string{`{"commands":[{"order":"o1"},null,[1]]}`, `{"commands":[]}`, `{"COMMANDS":[7],"commands":["\ud800"]}`, `{"commands":[7,"é"]}`, "{\"commands\":[\"\xff\"]}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		commands, err := decodeBatch(body)
		if err != nil {
			if refusal, ok := errors.AsType[*Refusal](err); !ok || refusal.Reason != "json" && refusal.Reason != "field" && refusal.Reason != "commands" {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if len(commands) == 0 || len(commands) > maxPosts {
			t.Fatalf("%d commands", len(commands))
		}
		for _, c := range commands {
			if !json.Valid(c) || !strings.Contains(string(body), string(c)) {
				t.Fatalf("%q: command %q", body, c)
			}
		}
	})
}

// FuzzDecodeDelete looks for commands that are no deletes of the body's members.
func FuzzDecodeDelete(f *testing.F) {
	for _, seed := range []string{`{"order":"o","board":"1_2_3","members":["a","b"]}`, `{"order":"o","class":"c","dims":{"zone":"7"},"members":[""],"op":"incr","delta":1,"rank_id":7}`, `{"order":"o","members":["\ud800"]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		commands, err := decodeDelete(body)
		if err != nil {
			if asRefusal(err) == nil {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if len(commands) == 0 || len(commands) > maxPosts {
			t.Fatalf("%d commands", len(commands))
		}
		for _, data := range commands {
			c, err := DecodeCommand(data, 1)
			if err == nil && (c.Op != wire.OpDelete || !strings.HasSuffix(c.OrderID, "/"+c.Member)) {
				t.Fatalf("%q: %+v", body, c)
			}
		}
	})
}
