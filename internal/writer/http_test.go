package writer

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"rankcache"
	"rankcache/internal/servers"
	"rankcache/internal/testkit"
	"rankcache/rooms"
)

func TestPostScore(t *testing.T) {
	h := newFixture(t, testkit.Kfake(t).Addr(), nil)
	h.run(t)
	update := fmt.Sprintf(`{"v":1,"board":%q,"member":"a","op":"incr","delta":1,"score":1,"seq":1,"order":"o1","at":5`, h.board)
	status, answer := h.post(t, h.command("o1", "a"))
	equal(t, "answer", []any{status, answer}, []any{200, update + `,"duplicate":false}`})
	equal(t, "published", h.updates(t, 1)[0], update+"}")
	status, answer = h.post(t, h.command("o1", "b"))
	equal(t, "repeat", []any{status, answer}, []any{200, update + `,"duplicate":true}`})
	_, answer = h.post(t, fmt.Sprintf(`{"order":"o2","board":%q,"member":"a","op":"delete","at":5}`, h.board))
	equal(t, "delete", answer, fmt.Sprintf(`{"v":1,"board":%q,"member":"a","op":"delete","seq":2,"order":"o2","at":5,"duplicate":false}`, h.board))
}

func TestPostProblems(t *testing.T) {
	h := quiet(t, func(o *Options) {
		o.Tiers = tiers{boards: map[rankcache.BoardID]rooms.Mode{"blocked": rooms.ModeBlocked}}
	})
	h.do1(t, h.opCommand("set", "o1", "rich", "score", math.MaxFloat64))
	must(t, h.client.Set(t.Context(), string(h.board)+"x", "no board", 0).Err())
	with := func(old, replacement string) string {
		return strings.Replace(h.command("o2", "a"), old, replacement, 1)
	}
	for body, want := range map[string]problem{
		`{`:                                  {Status: 400, Code: "bad_request"},
		strings.Repeat(" ", MaxCommandLen+1): {Status: 413, Code: "body_too_large"},
		with(`"a"`, `""`):                    {Status: 400, Code: "bad_argument", Argument: "member"},
		with(`:1,`, `:1e999,`):               {Status: 400, Code: "bad_argument", Argument: "delta"},
		with(string(h.board), "blocked"):     {Status: 403, Code: "blocked"},
		with(string(h.board), string(h.board)+"x"):                  {Status: 409, Code: "wrong_type"},
		h.opCommand("incr", "o3", "rich", "delta", math.MaxFloat64): {Status: 422, Code: "score_overflow"},
	} {
		status, answer := h.post(t, body)
		checkProblem(t, body, status, answer, want)
	}
	equal(t, "board", h.scores(t), map[string]float64{"rich": math.MaxFloat64})
	equal(t, "refused", h.count("refused"), 6) // the body that was too large was never a command
}

func checkProblem(t *testing.T, what string, status int, answer string, want problem) {
	t.Helper()
	var got problem
	must(t, json.Unmarshal([]byte(answer), &got))
	if got.Title == "" {
		t.Errorf("%.60s: no title", what)
	}
	got.Title, got.Detail = "", ""
	equal(t, fmt.Sprintf("%.60s", what), got, want)
	equal(t, "status", status, want.Status)
}

// Without Kafka the score is changed, which the caller is told; the same
// command again is harmless and brings the update.
func TestPostWhileKafkaIsAway(t *testing.T) {
	h := newFixture(t, testkit.Kfake(t).Addr(), nil)
	status, answer := h.post(t, h.command("o1", "a"))
	checkProblem(t, "post", status, answer, problem{Status: 503, Code: "kafka_unavailable"})
	h.run(t)
	status, answer = h.post(t, h.command("o1", "a"))
	if status != 200 || !strings.HasSuffix(answer, `"duplicate":true}`) {
		t.Error(status, answer)
	}
	equal(t, "updates", len(h.updates(t, 1)), 1)
}

func TestPostWhileRedisIsAway(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	h := quiet(t, func(o *Options) { o.Redis = redisClient(t, server.Addr()) })
	must(t, server.Stop())
	rec := httptest.NewRecorder()
	h.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/v1/scores", strings.NewReader(h.command("o1", "a"))))
	checkProblem(t, "post", rec.Code, rec.Body.String(), problem{Status: 503, Code: "origin_unavailable"})
	equal(t, "header", []string{rec.Header().Get("Retry-After"), rec.Header().Get("Content-Type")}, []string{"1", "application/problem+json"})
}

func TestOtherPaths(t *testing.T) {
	h := quiet(t, nil)
	for target, want := range map[string]problem{
		"GET /v1/scores":  {Status: 405, Code: "method_not_allowed"},
		"POST /v1/score":  {Status: 404, Code: "unknown_path"},
		"DELETE /metrics": {Status: 404, Code: "unknown_path"},
	} {
		method, path, _ := strings.Cut(target, " ")
		rec := httptest.NewRecorder()
		h.Handler().ServeHTTP(rec, httptest.NewRequest(method, path, nil))
		checkProblem(t, target, rec.Code, rec.Body.String(), want)
	}
}
