package httpapi

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"rankcache/internal/testkit/apitest"
	"rankcache/internal/testkit/fixture"
)

// TestLimitsAreThoseOfTheDocument: server and document take the same requests, at
// both sides of each limit.
func TestLimitsAreThoseOfTheDocument(t *testing.T) {
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, newEnv(), Config{})
	for _, l := range dataLimits() {
		for target, taken := range map[string]bool{l.inside: true, l.outside: false} {
			a := s.do(t, l.method, l.path(target), l.body(target))
			if got := a.status != 400; got != taken {
				t.Errorf("%s: the server answers %d %s", l.name, a.status, a.body)
			}
			e := apitest.Exchange{Method: l.method, Target: l.path(target), RequestBody: l.body(target)}
			if err := doc.CheckRequest(e); (err == nil) != taken {
				t.Errorf("%s: %s %.60q and the document: %v, want it taken: %v", l.name, l.method, e.Target, err, taken)
			}
		}
	}
}

// dataLimit is a limit with a value on either side. The value takes the place of
// %s in target, or is a batch of so many members if there is none.
type dataLimit struct{ name, method, target, inside, outside string }

func (l dataLimit) path(value string) string {
	if l.method == "POST" {
		return l.target
	}
	return fmt.Sprintf(l.target, url.PathEscape(value))
}

func (l dataLimit) body(value string) string {
	if l.method == "POST" {
		return value
	}
	return ""
}

func dataLimits() []dataLimit {
	const top, member = "/v1/boards/tiny/top?", "/v1/boards/local/members/m000001?"
	x, umlaut := strings.Repeat, func(n int) string { return strings.Repeat("ü", n) }
	batch := func(n int, last string) string {
		return `{"members":[` + x(`"m",`, n-1) + `"` + last + `"]}`
	}
	const boards = "/v1/boards:batch"
	board := func(options string) string { return `{"boards":[{"board":"tiny"` + options + `}]}` }
	limits := []dataLimit{
		{"board", "GET", "/v1/boards/%s/top", x("b", 200), x("b", 201)},
		{"board's letters", "GET", "/v1/boards/%s/top", "a._:-Z/#{eu}@|=+,~$!", "a<b"},
		{"board's braces", "GET", "/v1/boards/%s/top", "lb:{eu}", "lb:{eu"},
		{"member of a path", "GET", "/v1/boards/local/members/%s", x("m", 128), x("m", 129)},
		{"member's bytes", "GET", "/v1/boards/local/members/%s", umlaut(64), umlaut(65)},
		{"member's letters", "GET", "/v1/boards/local/members/%s", "m n\u0080", "m\x1f"},
		{"profile's member", "GET", "/v1/profiles/%s", x("m", 128), x("m", 129)},
		{"me", "GET", top + "me=%s", x("m", 128), x("m", 129)},
		{"me's bytes", "GET", top + "me=%s", umlaut(64), umlaut(65)},
		{"me's letters", "GET", top + "me=%s", "m\u0080", "m\x7f"},
		{"no me", "GET", top + "me=%s", "m", ""},
		{"start", "GET", top + "start=%s", "0", "-1"},
		{"greatest start", "GET", top + "start=%s", "100000000", "100000001"},
		{"limit", "GET", top + "min_score=1&limit=%s", "0", "-1"},
		{"greatest limit", "GET", top + "limit=%s", "500", "501"},
		{"around", "GET", member + "around=%s", "0", "-1"},
		{"greatest around", "GET", member + "around=%s", "100", "101"},
		{"own around", "GET", top + "me=m&around=%s", "0", "-1"},
		{"greatest own around", "GET", top + "me=m&around=%s", "100", "101"},
		{"gap", "GET", top + "me=m&gap=%s", "1", "2"},
		{"fewest boards", "POST", boards, board(""), `{"boards":[]}`},
		{"most boards", "POST", boards, `{"boards":[` + x(`{"board":"b"},`, 9) + `{"board":"b"}]}`, `{"boards":[` + x(`{"board":"b"},`, 10) + `{"board":"b"}]}`},
		{"no boards", "POST", boards, board(""), `{"boards":null}`},
		{"a board's name", "POST", boards, `{"boards":[{"board":"` + x("b", 200) + `"}]}`, `{"boards":[{"board":"` + x("b", 201) + `"}]}`},
		{"no name", "POST", boards, board(""), `{"boards":[{}]}`},
		{"a board's start", "POST", boards, board(`,"start":0`), board(`,"start":-1`)},
		{"a board's greatest start", "POST", boards, board(`,"start":100000000`), board(`,"start":100000001`)},
		{"a board's limit", "POST", boards, board(`,"limit":1`), board(`,"limit":0`)},
		{"a board's greatest limit", "POST", boards, board(`,"limit":500`), board(`,"limit":501`)},
		{"a board's integer", "POST", boards, board(`,"start":0.0,"limit":1e1`), board(`,"limit":1.5`)},
		{"a board's option", "POST", boards, board(`,"gap":false`), board(`,"gap":null`)},
		{"a board's limit is a number", "POST", boards, board(`,"limit":7`), board(`,"limit":null`)},
		{"a board's room is a text", "POST", boards, board(`,"room":"88"`), board(`,"room":null`)},
		{"a board's order", "POST", boards, board(`,"order":"asc"`), board(`,"order":"up"`)},
		{"a board's room", "POST", boards, board(`,"room":"` + umlaut(32) + `"`), board(`,"room":"` + umlaut(33) + `"`)},
		{"no room of a board", "POST", boards, board(`,"room":"8"`), board(`,"room":""`)},
		{"a board's me", "POST", boards, board(`,"me":"` + umlaut(64) + `"`), board(`,"me":"` + umlaut(65) + `"`)},
		{"no me of a board", "POST", boards, board(`,"me":"m"`), board(`,"me":""`)},
		{"a board's around", "POST", boards, board(`,"me":"m","around":0`), board(`,"me":"m","around":-1`)},
		{"a board's greatest around", "POST", boards, board(`,"me":"m","around":100`), board(`,"me":"m","around":101`)},
		{"a board's gap", "POST", boards, board(`,"me":"m","gap":true`), board(`,"me":"m","gap":1`)},
		{"a board's profiles", "POST", boards, board(`,"profiles":true`), board(`,"profiles":"1"`)},
		{"an option that there is not", "POST", boards, board(``), board(`,"min_seq":1`)},
		{"a board's rank mode", "POST", boards, board(`,"rank_mode":"competition"`), board(`,"rank_mode":"Dense"`)},
		{"a board's percentile", "POST", boards, board(`,"percentile":true`), board(`,"percentile":1`)},
		{"order", "GET", top + "order=%s", "asc", "up"},
		{"profiles", "GET", top + "profiles=%s", "1", "2"},
		{"fewest members", "POST", "/v1/boards/local/members:batch", batch(1, "m"), `{"members":[]}`},
		{"most members", "POST", "/v1/boards/local/members:batch", batch(500, "m"), batch(501, "m")},
		{"member of a batch", "POST", "/v1/boards/local/members:batch", batch(2, x("m", 128)), batch(2, x("m", 129))},
		{"bytes of a member of a batch", "POST", "/v1/profiles:batch", batch(2, umlaut(64)), batch(2, umlaut(65))},
		{"no list", "POST", "/v1/profiles:batch", batch(1, "m"), `{"members":null}`},
		{"another field", "POST", "/v1/profiles:batch", batch(1, "m"), `{"members":["m"],"limit":1}`},
	}
	for _, target := range []string{top, member} {
		limits = append(limits,
			dataLimit{"rank_mode", "GET", target + "rank_mode=%s", "dense", "olympic"},
			dataLimit{"no rank_mode", "GET", target + "rank_mode=%s", "ordinal", ""},
			dataLimit{"percentile", "GET", target + "percentile=%s", "1", "2"},
			dataLimit{"room", "GET", target + "room=%s", x("8", 64), x("8", 65)},
			dataLimit{"room's bytes", "GET", target + "room=%s", umlaut(32), umlaut(33)},
			dataLimit{"room's letters", "GET", target + "room=%s", "8 8", "8\n8"},
			dataLimit{"no room", "GET", target + "room=%s", "8", ""},
			dataLimit{"max_age_ms", "GET", target + "max_age_ms=%s", "86400000", "86400001"},
			dataLimit{"min_seq", "GET", target + "min_seq=%s", "9007199254740992", "9007199254740993"},
			dataLimit{"run of min_state", "GET", target + "min_state=%s", fixture.Written.StateAt(1).String(), "0-1-"},
			dataLimit{"sum of min_state", "GET", target + "min_state=%s", "9-1-", "9-1-0A1B2C3D4E5F"},
			dataLimit{"digits of min_state", "GET", target + "min_state=%s", "9-0-0a1b2c3d4e5f", "9-00-0a1b2c3d4e5f"},
			dataLimit{"parts of min_state", "GET", target + "min_state=%s", "9-1-", "9-1"},
			dataLimit{"wait_ms", "GET", target + "min_seq=1&wait_ms=%s", "5000", "5001"})
	}
	return limits
}
