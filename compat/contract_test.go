package compat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"rankcache"
	"rankcache/internal/testkit/fixture"
)

// TestReadsAsCallersHaveThem: each message whole, with all fields that callers send, and all of the
// answer.
func TestReadsAsCallersHaveThem(t *testing.T) {
	env := fixture.New()
	env.Origin.N.Store(3)
	env.Origin.Closed.Store(true)
	h := newReads(t, env, "local")
	const hourly = `{"actId":"2","rankObj":{"rankId":"1","objId":"7"},"start":0,"limit":"2","t_time":"1795429800","tid":"m000001","need_total":true,"groups":[],"ext_json":[],"order_type":0,"noCache":false,`
	for _, c := range []struct{ method, target, body, want string }{
		// GetRankList; no filter is all that there is.
		{"POST", "/compat/rank/list", hourly + `"needDataFilter":[]}`, `{"actId":2,"rankObj":{"rankId":1,"objId":"7"},"rank_name":"Hours","rank_list":[` +
			`{"rank":1,"member_id":"m000000","score":12003,"info":{"nick":"N-m000000","v":0},"previous_rank":1},{"rank":2,"member_id":"m000001","score":12002,"info":{"nick":"N-m000001","v":0},"previous_rank":2}],` +
			`"rank_my":{"rank":2,"member_id":"m000001","score":12002,"info":{"nick":"N-m000001","v":0},"previous_rank":2},"rank_total":3,"group_rank_list":[],"locked":"locked","ext_json":[],"all_group_rank_list":[]}`},
		{"POST", "/compat/rank/list", hourly + `"needDataFilter":["RANK_COMPARE"]}`, `"rank_list":[{"rank":1,"member_id":"m000000","score":12003,"previous_rank":1},{"rank":2,"member_id":"m000001","score":12002,"previous_rank":2}]`},
		{"POST", "/compat/rank/list", hourly + `"needDataFilter":["RAW"]}`, `"rank_list":[{"rank":1,"member_id":"m000000","score":12003},{"rank":2,"member_id":"m000001","score":12002}],"rank_my":{"rank":2,"member_id":"m000001","score":12002},`},
		{"POST", "/compat/rank/list", `{"actId":1,"rankObj":{"rankId":1},"limit":1,"groups":["m000001"]}`, `"group_rank_list":[{"rank":2,"member_id":"m000001","score":7002}],"locked":"nolock","ext_json":[],"all_group_rank_list":[]}`},
		{"POST", "/compat/rank/list", `{"actId":1,"rankObj":{"rankId":1},"limit":1,"ext_json":[""]}`, `"ext_json":[]`},
		{"POST", "/compat/rank/list", `{"actId":1,"rankObj":{"rankId":1},"limit":1,"ext_json":""}`, `"ext_json":[]`}, // as it was once asked for
		// All fields of the message, with names as protojson writes them, and with texts that say more of the caller.
		{"POST", "/compat/rank/list", `{"actId":4,"rankObj":{"rankId":1,"objId":"7"},"start":0,"limit":499,"tTime":"0","tid":"m000001","needDataFilter":["RAW","INFO","RANK_COMPARE","ALL_GROUP"],"needTotal":true,"extJson":["{\"a\":1}"],"orderType":0,"noCache":false}`,
			`{"actId":4,"rankObj":{"rankId":1,"objId":"7"},"rank_name":"play","rank_list":` + rowsOfThree(true) + `,"rank_my":` + second(true) + `,"rank_total":3,"group_rank_list":` + rowsOfThree(false) +
				`,"locked":"locked","ext_json":[],"all_group_rank_list":[{"group_id":"m000000","rank_list":` + rowsOfThree(false) + `},{"group_id":"m000001","rank_list":` + rowsOfThree(false) + `},{"group_id":"m000002","rank_list":` + rowsOfThree(false) + `}]}`},
		{"POST", "/compat/rank/list", `{"actId":4,"rankObj":{"rankId":1,"objId":"7"},"limit":1,"groups":["m000001"],"needDataFilter":["SPEC_GROUP"]}`,
			`"group_rank_list":[` + second(false) + `],"locked":"locked","ext_json":[],"all_group_rank_list":[{"group_id":"m000001","rank_list":[{"rank":1,"member_id":"m000000","score":12003}]}]}`},
		// Scores by a name.
		{"POST", "/compat/getScore", `{"rank_name":"tiny","rank_type":"","rank_item":"m000001"}`, `{"code":0,"errcode":0,"message":"ok","errmsg":"ok","data":{"rank_item":"m000001","score":7002,"rank":2}}`},
		{"POST", "/compat/topScore", `{"rank_name":"tiny","rank_type":"","limit":1}`, `{"code":0,"errcode":0,"message":"ok","errmsg":"ok","data":{"data":[{"rank_item":"m000000","score":7003,"rank":1}],"list":[{"rank_item":"m000000","score":7003,"rank":1}]}}`},
		// Scores of users.
		{"GET", "/v1/scores?start=1&limit=1&board=tiny", "", `{"board":"tiny","data":[{"user_id":"m000001","user_name":"N-m000001","rank":2,"score":7002}],"scores":[{"member":"m000001","score":7002,"rank":2}],"total":3}`},
		{"GET", "/v1/scores/m000001?board=tiny", "", `{"member":"m000001","score":7002,"rank":2,"user_info":{"user_id":"m000001","user_name":"N-m000001","rank":2,"score":7002}}`},
	} {
		whole := strings.HasPrefix(c.want, "{")
		if status, got := ask(t, h, c.method, c.target, c.body); status != 200 || whole && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("%s %s %s\ngot  %d %.700s\nwant %s", c.method, c.target, c.body, status, got, c.want)
		}
	}
}

// rowsOfThree are the rows of three members, with profiles or without.
func rowsOfThree(info bool) string {
	return "[" + rowText(1, info) + "," + second(info) + "," + rowText(3, info) + "]"
}

func second(info bool) string { return rowText(2, info) }

func rowText(rank int, info bool) string {
	text := fmt.Sprintf(`{"rank":%d,"member_id":"m%06d","score":%d`, rank, rank-1, 12004-rank)
	if info {
		text += fmt.Sprintf(`,"info":{"nick":"N-m%06d","v":0}`, rank-1)
	}
	return text + "}"
}

// TestNumericItems: a member is a number where it is written as one, as the document has it.
func TestNumericItems(t *testing.T) {
	for member, want := range map[item]string{"0": `0`, "1000123": `1000123`, "9007199254740992": `9007199254740992`, "9007199254740993": `"9007199254740993"`, "007": `"007"`, "-1": `"-1"`, "+1": `"+1"`, "1e3": `"1e3"`, "u": `"u"`} {
		if got, err := json.Marshal(itemRow{Item: member}); err != nil || string(got) != `{"rank_item":`+want+`,"score":0,"rank":0}` {
			t.Errorf("%s: %s, %v", member, got, err)
		}
	}
}

// TestTypesNameBoards: rank_type has the values of dimensions in the order of the board's template,
// and the period.
func TestTypesNameBoards(t *testing.T) {
	env := fixture.New()
	h := newReads(t, env, "")
	for _, c := range []struct{ name, kind, board, wrong string }{
		{"hourly", "7", "hourly:7:20261123-H10", ""},
		{"hourly", "7@20261123-H09", "hourly:7:20261123-H09", ""},
		{"hourly", "7@previous", "hourly:7:20261123-H09", ""},
		{"hourly", "7@now", "hourly:7:20261123-H10", ""},
		{"square", "a,b", "square:20261123:a:b", ""},
		{"square", "a,b@20261122", "square:20261122:a:b", ""},
		{"square", "a,b@2026-11-21T17:00:00+01:00", "square:20261122:a:b", ""},
		{"two", "b,a", "two:b:a", ""},
		{"master_luck_day", "20261122", "luck:20261122", ""}, {"master_luck_day", "", "luck:20261123", ""}, {"master_luck_day", "20261122@20261122", "", "want a value for each"},
		{"ladder", "20261122", "", "rank_type"}, {"tiny", "20261122", "", "no periods"},
		{"square", "a", "", "want a value for each"}, {"square", "a,b,c", "", "want a value for each"}, {"square", "", "", "want a value for each"},
		{"square", "a,", "", "dimension x"}, {"square", "a b,c", "", "dimension y"}, {"square", "@20261122", "", "want a value for each"},
		{"square", "a,b@", "", "behind @"}, {"square", "a,b@yesterday", "", "want now, previous"}, {"two", "a,b@20261122", "", "no periods"},
		{"square", "a,b@20261119", "", "unknown_period"}, {"tiny", "7", "", "want a value for each"}, {"1_2_3", "@20261122", "", "not_supported"},
	} {
		asked := fmt.Errorf("%w: asked for it", rankcache.ErrRankMode)
		env.Origin.FailBoard(rankcache.BoardID(c.board), asked)
		status, got := ask(t, h, "POST", "/compat/topScore", fmt.Sprintf(`{"rank_name":%q,"rank_type":%q,"limit":1}`, c.name, c.kind))
		if c.wrong == "" && !strings.Contains(got, "asked for it") || c.wrong != "" && (status < 400 || !strings.Contains(got, c.wrong)) {
			t.Errorf("%s %q: %d %s, want %s%s", c.name, c.kind, status, got, c.board, c.wrong)
		}
		env.Origin.FailBoard(rankcache.BoardID(c.board), nil)
	}
}

// TestChangesAsCallersHaveThem: each message whole, what the writer gets of it, and all of the answer.
func TestChangesAsCallersHaveThem(t *testing.T) {
	const list = `{"appid":"4","actId":"1","xcode":"hush","rankObj":{"rankId":"1","objId":"7"},"t_time":"1700000000","msgId":"m",`
	for _, c := range []struct {
		path, body    string
		answer, posts string
		status        int
		wants         string
	}{
		{"/compat/rank/update", list + `"data":[{"member_id":"u","score":"41","data":""},{"member_id":"v","score":"7","data":""}],"update_type":0,"plusOrminus":0}`, `{"results":[{"result":{"score":41}},{"problem":{"status":422,"code":"late","title":"t"}}]}`,
			`{"commands":[{"class":"gift","dims":{"zone":"7"},"member":"u","op":"set","score":41,"order":"m/u","at":1700000000000},{"class":"gift","dims":{"zone":"7"},"member":"v","op":"set","score":7,"order":"m/v","at":1700000000000}]}`, 200,
			`{"actId":1,"rankObj":{"rankId":1,"objId":"7"},"data":[{"member_id":"u","score":41,"errCode":0,"result_score":41},{"member_id":"v","score":7,"errCode":422,"errMsg":"late","result_score":0}]}`},
		{"/compat/rank/update", list + `"data":[{"member_id":"u","score":"5"}],"update_type":1,"plusOrminus":1}`, `{"results":[{"result":{"score":36}}]}`,
			`"delta":-5,`, 200, `"data":[{"member_id":"u","score":5,"errCode":0,"result_score":36}]}`},
		// Rows and names as answers and protojson have them; a result below zero is applied.
		{"/compat/rank/update", `{"appid":4,"actId":1,"xcode":"hush","rankObj":{"rankId":1,"objId":"7"},"data":[{"memberId":"u","score":"9","errCode":0,"errMsg":"","data":"text","resultScore":"0"}],"tTime":"0","updateType":1,"msgId":"m","plusOrminus":"1"}`, `{"results":[{"result":{"score":-4}}]}`,
			`{"commands":[{"class":"gift","dims":{"zone":"7"},"member":"u","op":"incr","delta":-9,"order":"m/u"}]}`, 200, `{"actId":1,"rankObj":{"rankId":1,"objId":"7"},"data":[{"member_id":"u","score":9,"errCode":0,"result_score":0}]}`},
		{"/compat/rank/update", `{"actId":1,"rankObj":{"rankId":4},"msgId":"m","data":[{"member_id":"u","score":9,"errCode":0,"data":"gold","result_score":9}]}`, `{"results":[{"result":{"score":9}}]}`,
			`"score":9,"order":"m/u","data":"gold"}`, 200, `"data":[{"member_id":"u","score":9,"errCode":0,"data":"gold","result_score":9}]}`},
		{"/compat/rank/delete", `{"actId":1,"rankObj":{"rankId":4},"msgId":"m","data":[{"memberId":"u","score":"9","data":"gold","errCode":0}]}`, `{"results":[{"result":{}}]}`, `"op":"delete","order":"m/u"}`, 200, `{}`},
		{"/compat/incrScore", `{"rank_name":"gift","rank_type":"7","rank_item":"1000123","score":1,"msg_id":"i"}`, `{"score":3}`, `"member":"1000123"`, 200, `{"code":0,"errcode":0,"message":"ok","errmsg":"ok","data":{"rank_item":1000123,"score":3,"status":true}}`},
		{"/compat/rank/delete", list + `"data":[{"member_id":"u","score":"41","data":""},{"member_id":"v","score":-1.5}]}`, `{"results":[{"result":{"score":0}},{"result":{"score":0}}]}`,
			`{"commands":[{"class":"gift","dims":{"zone":"7"},"member":"u","op":"delete","order":"m/u","at":1700000000000},{"class":"gift","dims":{"zone":"7"},"member":"v","op":"delete","order":"m/v","at":1700000000000}]}`, 200, `{}`},
		{"/compat/rank/delete", list + `"data":[{"member_id":"u","score":0},{"member_id":"v","score":0}]}`, `{"results":[{"result":{}},{"problem":{"status":503,"code":"origin_unavailable","title":"Redis did not answer","detail":"why"}}]}`, "", 503,
			`{"title":"Redis did not answer","status":503,"code":"origin_unavailable","detail":"member v: why; other members may be deleted, and a repeat with the same msgId is safe"}`},
		{"/compat/incrScore", `{"rank_name":"gift","rank_type":"7","rank_item":"u","score":"1","msg_id":"i"}`, `{"score":3}`,
			`{"class":"gift","dims":{"zone":"7"},"member":"u","op":"incr","delta":1,"order":"i/u"}`, 200, `{"code":0,"errcode":0,"message":"ok","errmsg":"ok","data":{"rank_item":"u","score":3,"status":true}}`},
		{"/compat/incrScore", `{"rank_name":"gift","rank_type":"7@20261122","rank_item":"u","score":1,"msg_id":"i"}`, `{"score":3}`,
			`{"board":"gift:7:20261122","member":"u","op":"incr","delta":1,"order":"i/u"}`, 200, `"status":true`},
		{"/compat/incrScore", `{"rank_name":"master_luck_day","rank_item":"u","score":1,"msg_id":"i"}`, `{"score":3}`, `{"class":"master_luck_day","member":"u"`, 200, `"status":true`},
		{"/compat/incrScore", `{"rank_name":"master_luck_day","rank_type":"20261128","rank_item":"u","score":1,"msg_id":"i"}`, `{"score":3}`, `{"board":"luck:20261128","member":"u"`, 200, `"status":true`},
		{"/compat/incrScore", `{"rank_name":"master_luk_day","rank_item":"u","score":1,"msg_id":"i"}`, ``, ``, 404, `"message":"unknown_class: rank_name master_luk_day is no class, and no board that exists`},
		{"/compat/incrScore", `{"rank_name":"down","rank_item":"u","score":1,"msg_id":"i"}`, ``, ``, 503, `"message":"origin_unavailable: `},
		{"/compat/incrScore", `{"rank_name":"laps","rank_item":"u","score":1,"msg_id":"i"}`, `{"score":3}`, `"class":"laps"`, 200, `"status":true`},
		{"/compat/incrScore", `{"rank_name":"gift","rank_type":"7@tomorrow","rank_item":"u","score":1,"msg_id":"i"}`, ``, ``, 400, `"message":"bad_argument: rank_type: period: is \"tomorrow\"`},
		{"/v1/scores?board=1_2_3", `{"user_id":"u","points":"1.5","msg_id":"i"}`, `{"score":3}`, `{"board":"1_2_3","member":"u","op":"incr","delta":1.5,"order":"i/u"}`, 200, `{"score":3}`},
		{"/v1/scores", `{"user_id":7,"points":-2,"msg_id":"i"}`, `{"score":3}`, `{"board":"users","member":"7","op":"incr","delta":-2,"order":"i/7"}`, 200, `{"score":3}`},
		{"/v1/scores", `{"order":"o","board":"1_2_3","member":"u","op":"incr","delta":1}`, `{"score":3}`, `{"order":"o","board":"1_2_3","member":"u","op":"incr","delta":1}`, 200, `{"score":3}`},
		{"/v1/scores", `no JSON`, `{"code":"invalid"}`, `no JSON`, 400, `{"code":"invalid"}`},
		{"/v1/scores", `{"user_id":"u"}`, ``, ``, 400, `"argument":"points","detail":"is missing"`},
		{"/v1/scores", `{"user_id":null,"points":1}`, ``, ``, 400, `"argument":"user_id"`},
		{"/v1/scores", `{"user_id":"u","points":"NaN"}`, ``, ``, 400, `"argument":"points"`},
		{"/v1/scores", `{"user_id":"u","points":1,"delta":2}`, ``, ``, 422, `"code":"not_supported","argument":"delta"`},
		{"/v1/scores?board=a%20b", `{"user_id":"u","points":1}`, ``, ``, 400, `"argument":"board"`},
		{"/v1/scores", `{"user_id":"u","points":1,"msg_id":"` + strings.Repeat("x", 200) + `"}`, ``, ``, 400, `"argument":"msg_id"`},
	} {
		n := &next{status: c.status, answer: c.answer}
		if strings.HasPrefix(c.answer, `{"results"`) {
			n.status = 200
		}
		h := newChanges(t, n)
		h.board = "users"
		w := send(h, "POST", c.path, c.body)
		got, whole := strings.TrimSpace(w.Body.String()), strings.HasPrefix(c.wants, "{")
		if w.Code != c.status || !strings.Contains(n.posts, c.posts) || c.posts == "" && c.answer == "" && n.posts != "" || whole && got != c.wants || !strings.Contains(got, c.wants) {
			t.Errorf("%s %s\nposts %s\nwant  %s\nanswers %d %s\nwant    %d %s", c.path, c.body, n.posts, c.posts, w.Code, w.Body, c.status, c.wants)
		}
	}
}

// TestPointsNeedABoard: without one, and of other requests, nothing is looked at.
func TestPointsNeedABoard(t *testing.T) {
	n := &next{status: 400, answer: `{}`}
	h := newChanges(t, n)
	if send(h, "POST", "/v1/scores", `{"user_id":"u","points":1}`); n.posts != `{"user_id":"u","points":1}` {
		t.Error("without a board:", n.posts)
	}
	h.board = "users"
	long, posts := strings.Repeat(" ", 2*maxLen), n.posts
	if w := send(h, "POST", "/v1/scores", `{"user_id":"u","points":1}`+long); w.Code != 400 || n.posts != posts {
		t.Error("points in a long body:", w.Code, w.Body)
	}
	if send(h, "POST", "/v1/scores", `{"order":"o"`+long+`}`); n.posts != `{"order":"o"`+long+`}` {
		t.Errorf("a long body: %d bytes", len(n.posts))
	}
	for _, path := range []string{"/v1/scores:batch", "/v1/scores:delete"} {
		if send(h, "POST", path, `{"user_id":"u","points":1}`); n.path != path || n.posts != `{"user_id":"u","points":1}` {
			t.Error(path, n)
		}
	}
}
