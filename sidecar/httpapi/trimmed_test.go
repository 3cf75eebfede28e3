package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"rankcache/internal/testkit/fixture"
	"rankcache/sidecar/encode"
)

// TestMemberWithoutARank: a member that its board has trimmed has a score and a null rank,
// wherever members are answered; who has no score is not there.
func TestMemberWithoutARank(t *testing.T) {
	env := newEnv()
	env.Origin.Trimmed.Store("out", 5.25)
	cfg := env.config()
	cfg.Tiers = fixture.Tiers(fixture.Rooms + `
classes:
  - {name: local, board: local, period: none, ops: [incr], trim: 10, ties: first}
  - {name: hot, board: hot, period: none, ops: [incr], trim: 10, ties: first}
  - {name: any, board: any, period: none, ops: [incr], trim: 10, ties: first}
`)
	s := startReader(t, readerOf(t, cfg), Config{}, fixture.FailOnWarn(t))
	const row = `"rank":null,"member":"out","score":5`
	for _, board := range []string{"local", "hot", "any"} {
		for _, c := range []struct{ method, path, body, want string }{
			{"GET", "members/out", "", `"order":"desc",` + row + `}`},
			{"GET", "members/out?profiles=1&order=asc", "", `"order":"asc",` + row + `,"profile":{"nick":"N-out","v":0},"profiles_missing":0}`},
			{"GET", "members/out?around=2", "", row + `,"neighbours":[]}`},
			{"GET", "members/out?around=2&profiles=1&percentile=1&rank_mode=competition", "", row + `,"profile":{"nick":"N-out","v":0},"neighbours":[],"profiles_missing":0}`},
			{"GET", "top?limit=2&me=out", "", `"me":{` + row + `,"seq":`},
			{"GET", "top?limit=2&me=out&around=1&gap=1&profiles=1", "", `,"gap":null,"neighbours":[],"profiles_missing":0}}`},
			{"GET", "top?limit=2&me=out&percentile=1", "", `"me":{` + row + `,"seq":`},
			{"GET", "top?limit=2&me=nobody", "", `"me":null}`},
			{"GET", "top?limit=2&me=nobody&gap=1", "", `"me":null}`},
			{"POST", "members:batch", `{"members":["out","nobody"]}`, `"members":[{` + row + `},{"rank":null,"member":"nobody","score":null}]`},
			{"POST", "members:batch?percentile=1", `{"members":["out","m000001"]}`, `"members":[{` + row + `},{"rank":2,"member":"m000001",`},
			{"POST", "../boards:batch", fmt.Sprintf(`{"boards":[{"board":%q,"limit":1,"me":"out"}]}`, board), `"me":{` + row + `,"seq":`},
		} {
			path := "/v1/boards/" + board + "/" + c.path
			if strings.HasPrefix(c.path, "../") {
				path = "/v1/boards:batch"
			}
			if a := s.do(t, c.method, path, c.body); a.status != 200 || !strings.Contains(a.body, c.want) {
				t.Errorf("%s: %d %s\nwant %s", path, a.status, a.body, c.want)
			}
		}
		for _, path := range []string{"members/nobody", "members/nobody?around=1", "members/nobody?percentile=1"} {
			if a := s.get(t, "/v1/boards/"+board+"/"+path); a.status != 404 || !strings.Contains(a.body, string(encode.CodeUnknownMember)) {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
	}
}
