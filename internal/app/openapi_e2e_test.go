package app

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"rankcache/internal/testkit/apitest"
	"rankcache/sidecar"
)

// asked is one request to a running sidecar or writer.
type asked struct {
	c                        *child
	listener, method, target string
	body                     string
	status                   int
}

// TestRunningAnswersAreInTheDocument asks the real processes on every port and
// holds the answers against openapi.yaml. The data port's are held in the tests of
// sidecar; here is what that folder does not serve.
func TestRunningAnswersAreInTheDocument(t *testing.T) {
	t.Parallel()
	doc, err := apitest.Load(sidecar.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	h := newFixture(t)
	h.give(t, h.star, 3)
	s := h.serve(t, "--admin-token", "open sesame", "--profile-redis-key", "profile:<member>")
	s.WaitReady(time.Minute)
	for _, a := range h.everyRoute(s) {
		e, err := a.ask()
		if err != nil {
			t.Error(err)
			continue
		}
		if e.Status != a.status {
			t.Errorf("%s %s: %d, want %d: %s", a.method, a.target, e.Status, a.status, e.Body)
		}
		if err := doc.Check(e); err != nil {
			t.Errorf("%s %s: %v", a.method, a.target, err)
		}
	}
	for _, op := range []string{"GET /rooms", "POST /rooms", "POST /rooms/bypass", "GET /hotkeys", "GET /status", "GET /status/{board}", "GET /boards/{board}/top", "POST /v1/scores", "GET /v1/status"} {
		if !doc.Seen(op, http.StatusOK) {
			t.Errorf("no good answer to %s was checked", op)
		}
	}
}

func (h *fixture) everyRoute(s *child) []asked {
	order := func(more string) string {
		return fmt.Sprintf(`{"order":"doc-%s-1","board":%q,"member":"m1","op":"incr","delta":1%s}`, h.small, h.small, more)
	}
	return []asked{
		{s, "health", "GET", "/livez", "", 200},
		{s, "health", "GET", "/readyz", "", 200},
		{s, "health", "GET", "/startupz", "", 200},
		{s, "health", "GET", "/status", "", 404},
		{s, "admin", "GET", "/readyz", "", 200},
		{s, "admin", "GET", "/status", "", 200},
		{s, "admin", "GET", "/status?expect=state=ready", "", 200},
		{s, "admin", "GET", "/status?expect=state=asleep", "", 503},
		{s, "admin", "GET", "/status/" + string(h.star), "", 200},
		{s, "admin", "GET", "/boards/" + string(h.star) + "/top?limit=2", "", 200},
		{s, "admin", "GET", "/boards/" + string(h.star) + "/top?limit=0", "", 400},
		{s, "admin", "GET", "/", "", 200},
		{s, "admin", "GET", "/assets/app.js", "", 200},
		{s, "admin", "GET", "/assets/nothing.js", "", 404},
		{s, "admin", "GET", "/assets/", "", 404},
		{s, "admin", "GET", "/debug/pprof/heap", "", 200},
		{s, "admin", "GET", "/debug/pprof/nothing", "", 404},
		{s, "admin", "GET", "/hotkeys", "", 200},
		{s, "admin", "GET", "/rooms", "", 200},
		{s, "admin", "POST", "/rooms", `{"uid":"4711","mode":"blocked"}`, 200},
		{s, "admin", "POST", "/rooms", `{"uid":"4711","mode":"purple"}`, 400},
		{s, "admin", "DELETE", "/rooms?uid=4711", "", 204},
		{s, "admin", "DELETE", "/rooms?uid=4711", "", 404},
		{s, "admin", "GET", "/events", "", 200},
		{s, "admin", "GET", "/history", "", 200},
		{s, "admin", "GET", "/runbooks.md", "", 200},
		{s, "admin", "POST", "/boards/" + string(h.star) + "/compare", "", 200},
		{s, "admin", "GET", "/config", "", 200},
		{s, "admin", "POST", "/rooms/bypass", fmt.Sprintf(`{"board":%q,"for_s":60,"by":"a test"}`, h.small), 200},
		{s, "admin", "POST", "/rooms/bypass", `{"for_s":60,"by":"a test"}`, 400},
		{s, "admin", "GET", "/rooms", "", 200},
		{s, "admin", "GET", "/status", "", 200},
		{s, "admin", "GET", "/status/" + string(h.small), "", 200},
		{s, "admin", "DELETE", "/rooms/bypass?board=" + string(h.small), "", 204},
		{s, "admin", "DELETE", "/rooms/bypass?board=" + string(h.small), "", 404},
		{s, "admin", "DELETE", "/profiles/nobody", "", 404},
		{s, "admin", "PUT", "/rooms", "", 405},
		{s, "admin", "DELETE", "/classes", "", 404},
		{s, "admin", "PUT", "/classes", `{"classes":[{"name":"doc","board":"doc:{period}","period":"day"}]}`, 200},
		{s, "admin", "PUT", "/classes", `{"classes":[{"name":"doc","board":"doc:{period}","period":"week"}]}`, 400},
		{s, "admin", "GET", "/classes", "", 200},
		{s, "admin", "DELETE", "/classes", "", 204},
		{h.writer, "scores", "POST", "/v1/scores", order(""), 200},
		{h.writer, "scores", "POST", "/v1/scores", order(""), 200}, // again
		{h.writer, "scores", "POST", "/v1/members:hide", fmt.Sprintf(`{"board":%q,"member":"m1","reason":"a test"}`, h.small), 200},
		{h.writer, "scores", "POST", "/v1/scores", order(""), 200},
		{h.writer, "scores", "POST", "/v1/members:restore", fmt.Sprintf(`{"board":%q,"member":"m1","reason":"a test"}`, h.small), 200},
		{h.writer, "scores", "POST", "/v1/members:hide", fmt.Sprintf(`{"board":%q,"member":"m1"}`, h.small), 400},
		{h.writer, "scores", "POST", "/v1/members:hide", `{"class":"nobody","all":true,"member":"m1","reason":"a test"}`, 422},
		{h.writer, "scores", "GET", "/v1/status", "", 200},
		{h.writer, "scores", "POST", "/v1/scores", order(`,"op":"steal"`), 400},
		{h.writer, "scores", "POST", "/v1/scores", `{`, 400},
		{h.writer, "scores", "POST", "/v1/scores", fmt.Sprintf(`{"order":"doc-2","board":%q,"member":"m1","op":"incr","delta":1}`, h.blocked), 403},
	}
}

func (a asked) ask() (e apitest.Exchange, err error) {
	req, err := http.NewRequest(a.method, a.c.URL(a.listener, a.target), strings.NewReader(a.body))
	if err != nil {
		return e, err
	}
	req.Header.Set("Authorization", "Bearer open sesame")
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return e, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return apitest.Exchange{Method: a.method, Target: a.target, RequestHeader: req.Header, RequestBody: a.body,
		Status: resp.StatusCode, Header: resp.Header, Body: string(body)}, err
}
