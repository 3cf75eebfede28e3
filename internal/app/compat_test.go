package app

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"rankcache/internal/testkit"
	"rankcache/internal/testkit/apitest"
	"rankcache/sidecar"
)

// TestOlderForms has real processes take changes in the older forms, and read them back.
func TestOlderForms(t *testing.T) {
	t.Parallel()
	h := newFixture(t, "--write-token", "hush-write", "--compat-board", "users"+testkit.Name(t))
	prefix := string(h.star) + "compat"
	h.writeRooms(t, fmt.Sprintf(`
classes:
- {name: gift, title: Gifts, board: "%[1]s:{zone}:{period}", period: day, ids: {act: 7, rank: 2}, group: team, ties: first, mode: super-hot, dims: {zone: ["9"]}}
- {name: team, board: "%[1]sTeam:{zone}:{period}", period: day, ids: {act: 7, rank: 3}}
`, prefix))
	testkit.Eventually(t, 30*time.Second, func() error { // the writer has read the file, and its producer is up
		return h.older("/compat/rank/update", `{"actId":7,"rankObj":{"rankId":3,"objId":"9"},"xcode":"hush-write","msgId":"t1","data":[{"member_id":"red","score":"30"},{"member_id":"blue","score":20}]}`,
			200, `"data":[{"member_id":"red","score":30,"errCode":0,"result_score":30},{"member_id":"blue","score":20,"errCode":0,"result_score":20}]`)
	})
	s := h.serve(t, "--compat-board", string(h.small))
	s.WaitReady(time.Minute)
	const gift = `"actId":7,"rankObj":{"rankId":2,"objId":"9"}`
	for i, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/compat/rank/update", `{` + gift + `,"xcode":"hush-write","update_type":1,"msgId":"g1","data":[{"member_id":"a","score":5.7},{"member_id":"b","score":5}]}`, 200, `{"member_id":"a","score":5,"errCode":0,"result_score":5},{"member_id":"b","score":5,"errCode":0,"result_score":5}`},
		{"/compat/rank/update", `{` + gift + `,"xcode":"hush-write","update_type":1,"msgId":"g1","data":[{"member_id":"a","score":5}]}`, 200, `"result_score":5}`}, // again
		{"/compat/rank/update", `{` + gift + `,"xcode":"hush-write","update_type":1,"plusOrminus":1,"msgId":"g2","data":[{"member_id":"b","score":2}]}`, 200, `"result_score":3}`},
		{"/compat/rank/update", `{` + gift + `,"xcode":"wrong","data":[{"member_id":"a","score":5}]}`, 401, `"code":"token_required"`},
		{"/compat/rank/update", `{` + gift + `,"xcode":"hush-write","data":[{"member_id":"a","score":-5}]}`, 422, `"argument":"score"`},
		{"/compat/rank/update", `{` + gift + `,"xcode":"hush-write","t_time":1,"data":[{"member_id":"a","score":5}]}`, 200, `"errCode":422,"errMsg":"`},
		{"/compat/rank/update", `{` + gift + `,"xcode":"hush-write","msgId":"g3","data":[{"member_id":"c","score":1},{"member_id":"d","score":1}]}`, 200, `"result_score":1},{`},
		{"/compat/rank/delete", `{` + gift + `,"xcode":"hush-write","msgId":"g4","data":[{"member_id":"d","score":"1"}]}`, 200, `{}`},
		{"/compat/incrScore", `{"rank_name":"gift","rank_type":"9","rank_item":"a","score":2,"msg_id":"i1"}`, 200, `{"code":0,"errcode":0,"message":"ok","errmsg":"ok","data":{"rank_item":"a","score":7,"status":true}}`},
		{"/compat/rank/delete", `{"actId":7,"rankObj":{"rankId":2,"objId":"9"},"xcode":"hush-write","t_time":1,"data":[{"member_id":"d","score":1}]}`, 422, `"code":"`},
		{"/compat/incrScore", `{"rank_name":"gift","rank_type":"9@previous","rank_item":"a","score":2,"msg_id":"i0"}`, 422, `"message":"late: `},
		{"/v1/scores?board=" + string(h.small), `{"user_id":"y","points":"0.5","msg_id":"p1"}`, 200, `"member":"y","op":"incr","delta":0.5,"score":0.5,`},
		{"/v1/scores?board=" + string(h.small), `{"user_id":"y","points":"0.5","msg_id":"p1"}`, 200, `"duplicate":true`},
		{"/v1/scores", `{"user_id":"y","points":2}`, 200, `"score":2,`},
		{"/v1/scores", `{"user_id":"y","points":2}`, 200, `"score":4,`},
		{"/compat/incrScore", `{"rank_name":"` + string(h.small) + `","rank_item":"x","score":1.5,"msg_id":"i2"}`, 200, `"score":1.5,`},
		{"/compat/incrScore", `{"rank_name":"rankcache:rooms","rank_item":"x","score":1}`, 400, `is no class, and bad board id`},
		{"/compat/incrScore", `{"rank_name":"` + string(h.blocked) + `","rank_type":"day","rank_item":"x","score":1}`, 422, `{"code":422,"errcode":422,"message":"not_supported`},
	} {
		if err := h.older(c.path, c.body, c.status, c.want); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	list := `{` + gift + `,"start":0,"limit":2,"tid":"c","need_total":true,"groups":["blue","green"],"needDataFilter":["RAW","SPEC_GROUP"]}`
	rows := `"rank_list":[{"rank":1,"member_id":"a","score":7},{"rank":2,"member_id":"b","score":3}]`
	mine := `"rank_my":{"rank":3,"member_id":"c","score":1},"rank_total":3`
	groups := `"group_rank_list":[{"rank":2,"member_id":"blue","score":20},{"rank":0,"member_id":"green","score":0}],"locked":"nolock","ext_json":[],"all_group_rank_list":[]}`
	testkit.Eventually(t, 30*time.Second, func() error { // the copy follows
		return posted(s, "data", "/compat/rank/list", list, 200, `{`+gift+`,"rank_name":"Gifts",`+rows+`,`+mine+`,`+groups)
	})
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/compat/rank/list", strings.Replace(list, `"limit"`, `"noCache":true,"order_type":1,"limit"`, 1), 200, `"rank_list":[{"rank":1,"member_id":"c","score":1},{"rank":2,"member_id":"b","score":3}],"rank_my":{"rank":1,`},
		{"/compat/rank/list", `{` + gift + `,"limit":1,"needDataFilter":[]}`, 200, `"rank_list":[{"rank":1,"member_id":"a","score":7,"previous_rank":0}],"group_rank_list":[{"rank":1,"member_id":"red",`},
		{"/compat/topScore", `{"rank_name":"gift","rank_type":"9@previous","limit":1}`, 200, `"data":{"data":[],"list":[]}}`},
		{"/compat/rank/list", `{"actId":7,"rankObj":{"rankId":9}}`, 404, `"code":"unknown_class"`},
		{"/compat/getScore", `{"rank_name":"gift","rank_type":"9","rank_item":"a"}`, 200, `{"code":0,"errcode":0,"message":"ok","errmsg":"ok","data":{"rank_item":"a","score":7,"rank":1}}`},
		{"/compat/getScore", `{"rank_name":"gift","rank_type":"9","rank_item":"nobody"}`, 200, `"data":{"rank_item":"nobody","score":0,"rank":0}}`},
		{"/compat/topScore", `{"rank_name":"gift","rank_type":"9","limit":1}`, 200, `"data":{"data":[{"rank_item":"a","score":7,"rank":1}],"list":[{"rank_item":"a","score":7,"rank":1}]}}`},
		{"/compat/topScore", `{"rank_name":"rankcache:rooms"}`, 400, `is no class, and bad board id`},
		{"/compat/topScore", `{"rank_name":"gift"}`, 400, `{"code":400,"errcode":400,"message":"bad_argument: rank_type: `},
	} {
		if err := posted(s, "data", c.path, c.body, c.status, c.want); err != nil {
			t.Error(err)
		}
	}
	if code, body := s.Get("data", "/v1/scores"); code != 200 || body != fmt.Sprintf(`{"board":%q,"data":[{"user_id":"x","user_name":"","rank":1,"score":1.5},{"user_id":"y","user_name":"","rank":2,"score":0.5}],"scores":[{"member":"x","score":1.5,"rank":1},{"member":"y","score":0.5,"rank":2}],"total":2}`, h.small) {
		t.Error(code, body)
	}
	if code, body := s.Get("data", "/v1/scores/x?board="+string(h.small)); code != 200 || body != `{"member":"x","score":1.5,"rank":1,"user_info":{"user_id":"x","user_name":"","rank":1,"score":1.5}}` {
		t.Error(code, body)
	}
	checkOlderGets(t, s)
	if err := h.older("/compat/incrScore", `{"rank_name":"gift","rank_type":"9","rank_item":"a","score":1,"msg_id":"i3"}`, 200, `"score":8,`); err != nil {
		t.Error(err)
	}
	testkit.Eventually(t, 30*time.Second, func() error {
		return posted(s, "data", "/compat/getScore", `{"rank_name":"gift","rank_type":"9","rank_item":"a"}`, 200, `"score":8,`)
	})
	if _, metrics := s.Get("admin", "/metrics"); strings.Contains(metrics, "\nrankcache_replay_visible_seconds_count 0\n") {
		t.Errorf("the time from the last change to the board is not measured:\n%s", metrics)
	}
	if _, metrics := s.Get("admin", "/metrics"); !strings.Contains(metrics, `rankcache_requests_total{result="ok",route="compat",source=""}`) || !strings.Contains(metrics, `{result="unknown_class",route="compat",source=""} 1`) {
		t.Errorf("metrics lack the route:\n%s", metrics)
	}
}

// checkOlderGets holds the GET requests of older forms against the document, and that all of its
// operations were asked for.
func checkOlderGets(t *testing.T, s *child) {
	for target, status := range map[string]int{"/v1/scores": 200, "/v1/scores?start=1&limit=5": 200, "/v1/scores?limit=0": 400, "/v1/scores?min_seq=1": 422, "/v1/scores/x": 200, "/v1/scores/x?board=%01": 400} {
		e, err := asked{s, "data", http.MethodGet, target, "", status}.ask()
		if err == nil {
			err = checkOlder(e)
		}
		if err != nil || e.Status != status {
			t.Errorf("%s: %d, want %d: %v", target, e.Status, status, err)
		}
	}
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	for op := range doc.Operations("older") {
		if !doc.Seen(op, http.StatusOK) {
			t.Errorf("no good answer to %s was checked", op)
		}
	}
}

// older posts to the writer with a token that is good unless the body has another one.
func (h *fixture) older(path, body string, status int, want string) error {
	return posted(h.writer, "scores", path, body, status, want)
}

// posted posts a body, and returns an error unless the answer has the status and the text, and
// is that of the document.
func posted(c *child, listener, path, body string, status int, want string) error {
	req, err := http.NewRequest(http.MethodPost, c.URL(listener, path), strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if !strings.Contains(body, "xcode") {
		req.Header.Set("Authorization", "Bearer hush-write")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil {
		err = checkOlder(apitest.Exchange{Method: req.Method, Target: path, RequestHeader: req.Header, RequestBody: body,
			Status: resp.StatusCode, Header: resp.Header, Body: string(answer)})
	}
	if err != nil || resp.StatusCode != status || !strings.Contains(string(answer), want) {
		return fmt.Errorf("%s %s: %d %s, %w, want %d with %s", path, body, resp.StatusCode, answer, err, status, want)
	}
	return nil
}

var document = sync.OnceValues(func() (*apitest.Document, error) { return apitest.Load(sidecar.OpenAPI()) })

// checkOlder holds an exchange against the document.
func checkOlder(e apitest.Exchange) error {
	doc, err := document()
	if err != nil {
		return err
	}
	return doc.Check(e)
}
