package writer

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/rooms"
)

func TestPostScore(t *testing.T) {
	h := newFixture(t, testkit.Kfake(t).Addr(), nil)
	h.run(t)
	status, answer := h.post(t, h.command("o1", "a"))
	m := h.meta(t)
	update, state := strings.TrimSuffix(h.update(m.Run, "o1", "a", 1), "}"), fmt.Sprintf(`,"state":"%s"`, m.State)
	equal(t, "answer", []any{status, answer}, []any{200, update + state + `,"duplicate":false}`})
	equal(t, "published", h.updates(t, 1)[0], update+"}")
	status, answer = h.post(t, h.command("o1", "a"))
	equal(t, "repeat", []any{status, answer}, []any{200, update + state + `,"duplicate":true}`})
	_, answer = h.post(t, fmt.Sprintf(`{"order":"o2","board":%q,"member":"a","op":"delete","at":%d}`, h.board, h.at))
	equal(t, "delete", answer, fmt.Sprintf(`{"v":2,"board":%q,"member":"a","op":"delete","run":%d,"seq":2,"sum":"000000000000","members":0,"order":"o2","at":%d,"state":"%[2]d-2-000000000000","duplicate":false}`,
		h.board, m.Run, h.at))
}

func TestPostProblems(t *testing.T) {
	h := quiet(t, func(o *Options) {
		o.Tiers = tiers{boards: map[rankcache.BoardID]rooms.Mode{"blocked": rooms.ModeBlocked}}
	})
	h.do1(t, h.opCommand("set", "o1", "rich", "score", maxScore))
	must(t, h.client.Set(t.Context(), string(h.board)+"x", "no board", 0).Err())
	with := func(old, replacement string) string {
		return strings.Replace(h.command("o2", "a"), old, replacement, 1)
	}
	for body, want := range map[string]httpserve.Problem{
		`{`:                                           {Status: 400, Code: "bad_request"},
		strings.Repeat(" ", MaxCommandLen+1):          {Status: 413, Code: "body_too_large"},
		with(`"a"`, `""`):                             {Status: 400, Code: "bad_argument", Argument: "member"},
		with(`:1,`, `:1e999,`):                        {Status: 400, Code: "bad_argument", Argument: "delta"},
		with(`"at"`, `"att"`):                         {Status: 400, Code: "bad_argument", Argument: "att"},
		with(`{`, `{"at":7,`):                         {Status: 400, Code: "bad_argument", Argument: "at"},
		with(string(h.board), "blocked"):              {Status: 403, Code: "blocked"},
		with(string(h.board), string(h.board)+"x"):    {Status: 409, Code: "wrong_type"},
		h.opCommand("incr", "o3", "rich", "delta", 1): {Status: 422, Code: "score_range"},
	} {
		status, answer := h.post(t, body)
		checkProblem(t, body, status, answer, want)
	}
	equal(t, "board", h.scores(t), map[string]float64{"rich": maxScore})
	equal(t, "refused", h.count("refused"), 8) // the body that was too large was never a command
	for reason, want := range map[string]float64{"200 applied": 1, "400 bad_argument": 4, "403 blocked": 1, "409 wrong_type": 1, "422 score_range": 1} {
		status, code, _ := strings.Cut(reason, " ")
		equal(t, "posts "+reason, testutil.ToFloat64(h.metrics.posts.WithLabelValues(status, code)), want)
	}
}

// TestForeignPosts: what a page of another site can make a browser send changes
// nothing, however the browser tells.
func TestForeignPosts(t *testing.T) {
	h := quiet(t, nil)
	const contentType, ours, json = "Content-Type", "http://example.com", "application/json" // httptest's host
	for name, c := range map[string]struct {
		header []string
		status int
		code   string
	}{
		"no type":                   {nil, 415, "unsupported_media_type"},
		"a no-cors fetch":           {[]string{contentType, "text/plain;charset=UTF-8"}, 415, "unsupported_media_type"},
		"a form, as curl -d":        {[]string{contentType, "application/x-www-form-urlencoded"}, 415, "unsupported_media_type"},
		"a type that is like it":    {[]string{contentType, "text/plain; application/json"}, 415, "unsupported_media_type"},
		"another charset":           {[]string{contentType, json + "; charset=utf-16"}, 415, "unsupported_media_type"},
		"another site":              {[]string{contentType, json, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, 403, "cross_origin"},
		"another port of this host": {[]string{contentType, json, "Sec-Fetch-Site", "same-site", "Origin", ours + ":3000"}, 403, "cross_origin"},
		"an older browser":          {[]string{contentType, json, "Origin", "https://evil.example"}, 403, "cross_origin"},
		"a page without an origin":  {[]string{contentType, json, "Origin", "null"}, 403, "cross_origin"},
	} {
		rec := h.send(h.command("o1", "a"), c.header...)
		checkProblem(t, name, rec.Code, rec.Body.String(), httpserve.Problem{Status: c.status, Code: c.code})
	}
	equal(t, "board", h.scores(t), map[string]float64{})
	for i, header := range [][]string{{contentType, json}, {contentType, "Application/JSON; charset=UTF-8"}, {contentType, json, "Sec-Fetch-Site", "same-origin", "Origin", ours}} {
		if rec := h.send(h.command(fmt.Sprint("o", i), "a"), header...); rec.Code != 200 {
			t.Errorf("%v: %d %s", header, rec.Code, rec.Body)
		}
	}
	equal(t, "board", h.scores(t), map[string]float64{"a": 3})
}

func checkProblem(t *testing.T, what string, status int, answer string, want httpserve.Problem) {
	t.Helper()
	var got httpserve.Problem
	must(t, json.Unmarshal([]byte(answer), &got))
	if got.Title == "" {
		t.Errorf("%.60s: no title", what)
	}
	got.Title, got.Detail = "", ""
	equal(t, fmt.Sprintf("%.60s", what), got, want)
	equal(t, "status", status, want.Status)
}

// Without Kafka the score is changed, and the answer reports it; the same
// command again is harmless and brings the update.
func TestPostWhileKafkaIsAway(t *testing.T) {
	h := newFixture(t, testkit.Kfake(t).Addr(), nil)
	status, answer := h.post(t, h.command("o1", "a"))
	checkProblem(t, "post", status, answer, httpserve.Problem{Status: 503, Code: "kafka_unavailable"})
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
	h.posts.time = 300 * time.Millisecond
	rec := h.send(h.command("o1", "a"), "Content-Type", "application/json")
	checkProblem(t, "post", rec.Code, rec.Body.String(), httpserve.Problem{Status: 503, Code: "origin_unavailable"})
	equal(t, "header", []string{rec.Header().Get("Retry-After"), rec.Header().Get("Content-Type")}, []string{"1", "application/problem+json"})
}

func TestOtherPaths(t *testing.T) {
	h := quiet(t, nil)
	for target, want := range map[string]httpserve.Problem{
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
