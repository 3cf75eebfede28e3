package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/apitest"
	"rankcache/internal/testkit/fixture"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/sidecar/encode"
)

// classFile has classes of which two half hours of zone 7 are local boards.
const classFile = `
classes:
  - {name: gift-half-hour, title: "Gifts of this half hour", board: "gift:{zone}:{period}", period: 30m, tz: Asia/Shanghai, keep: 1h, top: 20}
  - {name: gift-day, board: "giftday:{zone}:{period}", period: day}
  - {name: fans, board: "fans_{app}_{host}", period: none}
boards:
  - {match: "gift:7:20261122-35", mode: super-hot}
  - {match: "gift:7:20261122-36", mode: super-hot}
  - {match: "gift:9:20261122-35", mode: blocked}
`

// What answers by class have, and those of Redis have at another time.
var (
	periodPart = regexp.MustCompile(`,"class":"[^"]*","period":{[^}]*},"locked":"[a-z]*"`)
	published  = regexp.MustCompile(`"published_at":"[^"]*"`)
)

// classEnv is a server's environment with classes and a clock.
type classEnv struct {
	*testEnv
	now  atomic.Int64 // Unix nanoseconds
	file atomic.Pointer[rooms.File]
}

// newClassEnv returns one in which it is 17:20:30 on 22 November 2026 in Shanghai.
func newClassEnv(tb testing.TB) *classEnv {
	tb.Helper()
	env := &classEnv{testEnv: newEnv()}
	env.set("2026-11-22T17:20:30+08:00")
	env.load(tb, classFile)
	return env
}

func (env *classEnv) load(tb testing.TB, yaml string) {
	tb.Helper()
	file, err := rooms.Parse([]byte(yaml))
	if err != nil {
		tb.Fatal(err)
	}
	env.file.Store(file)
}

func (env *classEnv) set(now string) {
	t, err := time.Parse(time.RFC3339Nano, now)
	if err != nil {
		panic(err)
	}
	env.now.Store(t.UnixNano())
}

func (env *classEnv) start(t testing.TB) *running {
	t.Helper()
	cfg := env.config()
	cfg.Tiers = fixture.Tiers(classFile)
	boards := fixture.Boards[sidecar.Board]{}
	for i, id := range []string{"gift:7:20261122-35", "gift:7:20261122-36"} {
		boards[rankcache.BoardID(id)] = fixture.NewBoard(rankcache.BoardID(id), 600, uint64(35+i))
	}
	cfg.Boards = boards
	return startReader(t, readerOf(t, cfg), env.settings(), cmp.Or(env.log, fixture.FailOnWarn(t)))
}

func (env *classEnv) settings() Config {
	return Config{Classes: env.file.Load, Now: func() time.Time { return time.Unix(0, env.now.Load()) }}
}

// TestGoldenOfClasses compares whole bodies with testdata, one request a file.
func TestGoldenOfClasses(t *testing.T) {
	s := newClassEnv(t).start(t)
	const half = "/v1/classes/gift-half-hour"
	for name, path := range map[string]string{
		"classes":                "/v1/classes",
		"class_top":              half + "/top?zone=7&limit=2",
		"class_top_previous":     half + "/top?zone=7&limit=2&at=previous&me=m000009",
		"class_top_own":          half + "/top?zone=7&limit=1&me=m000009&around=1&gap=1&profiles=1",
		"class_top_ranked":       half + "/top?zone=7&limit=2&rank_mode=competition&percentile=1",
		"class_member_ranked":    half + "/members/m000009?zone=7&rank_mode=dense",
		"class_top_none":         "/v1/classes/fans/top?app=7&host=88&limit=1",
		"class_member":           half + "/members/m000009?zone=7",
		"class_around":           half + "/members/m000001?zone=7&around=1&at=20261122-36",
		"class_unknown_period":   half + "/top?zone=7&at=20261122-01",
		"class_unknown_class":    "/v1/classes/gifts/top?zone=7",
		"class_no_dimension":     half + "/top",
		"class_bad_at":           half + "/top?zone=7&at=later",
		"class_unknown_argument": half + "/top?zone=7&zine=8",
	} {
		t.Run(name, func(t *testing.T) {
			a := s.get(t, path)
			golden(t, name, a.body)
			if !json.Valid([]byte(a.body)) {
				t.Error("the body is not JSON")
			}
		})
	}
}

// TestWhichBoard: a class, its dimensions and a time name one board.
func TestWhichBoard(t *testing.T) {
	s := newClassEnv(t).start(t)
	for query, want := range map[string]string{
		"gift-half-hour/top?zone=7":                                        "gift:7:20261122-35 running",
		"gift-half-hour/top?zone=7&at=now":                                 "gift:7:20261122-35 running",
		"gift-half-hour/top?at=previous&zone=aZ9":                          "gift:aZ9:20261122-34 ended",
		"gift-half-hour/top?zone=%37&at=20261122-34":                       "gift:7:20261122-34 ended",
		"gift-half-hour/top?zone=7&at=20261122-36":                         "gift:7:20261122-36 upcoming",
		"gift-half-hour/top?zone=7&at=2026-11-22T17:29:59.9%2B08:00":       "gift:7:20261122-35 running",
		"gift-half-hour/top?zone=7&at=2026-11-22T09:30:00Z":                "gift:7:20261122-36 upcoming",
		"gift-half-hour/members/m000001?zone=8&at=2026-11-22T09:29:59.99Z": "gift:8:20261122-35 running",
		"gift-day/top?zone=7":                                              "giftday:7:20261122 running",
		"gift-day/top?zone=7&at=previous":                                  "giftday:7:20261121 ended",
		"fans/top?app=7&host=88":                                           "fans_7_88 ",
		"fans/members/m000001?host=88&app=7&at=now":                        "fans_7_88 ",
	} {
		for range 4 { // also from the request cache
			a := s.get(t, "/v1/classes/"+query)
			if got := boardOf(t, a); got != want {
				t.Errorf("%s: %d %s, want %s", query, a.status, got, want)
			}
		}
	}
}

// boardOf returns board and state of an answer.
func boardOf(t testing.TB, a answer) string {
	t.Helper()
	var body struct {
		Board  string
		Class  string
		Period struct{ State string }
	}
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || a.status == 200 && body.Class == "" {
		t.Fatalf("%v in %q", err, a.body)
	}
	return body.Board + " " + body.Period.State
}

// TestClassRefusals checks status, code and argument of what is wrong.
func TestClassRefusals(t *testing.T) {
	env := newClassEnv(t)
	s := env.start(t)
	const top = "/v1/classes/gift-half-hour/top"
	for _, c := range []struct {
		path     string
		status   int
		code     encode.Code
		argument string
	}{
		{"/v1/classes/", 404, encode.CodeUnknownPath, ""},
		{"/v1/classesx", 404, encode.CodeUnknownPath, ""},
		{"/v1/classes//top?zone=7", 404, encode.CodeUnknownClass, ""},
		{"/v1/classes/no/top?zone=7", 404, encode.CodeUnknownClass, ""},
		{"/v1/classes/gift-day/members:all", 404, encode.CodeUnknownPath, ""},
		{"/v1/classes?limit=1", 400, encode.CodeBadArgument, "limit"},
		{top, 400, encode.CodeBadArgument, "zone"},
		{top + "?zone=", 400, encode.CodeBadArgument, "zone"},
		{top + "?zone=%2", 400, encode.CodeBadArgument, "zone"},
		{top + "?zone=" + strings.Repeat("z", 65), 400, encode.CodeBadArgument, "zone"},
		{top + "?zone=7:8", 400, encode.CodeBadArgument, "zone"},
		{top + "?zone=7&zone=7", 400, encode.CodeBadArgument, "zone"},
		{top + "?zone=7&app=7", 400, encode.CodeBadArgument, "app"},
		{top + "?zone=7&period=20261122-35", 400, encode.CodeBadArgument, "period"},
		{top + "?zone=7&limit=21", 400, encode.CodeBadArgument, "limit"},
		{top + "?zone=7&at=", 400, encode.CodeBadArgument, "at"},
		{top + "?zone=7&at=20261122-49", 400, encode.CodeBadArgument, "at"},
		{top + "?zone=7&at=2026-11-22T17:20:00+08:00", 400, encode.CodeBadArgument, "at"}, // + is a space
		{top + "?zone=7&at=now&at=now", 400, encode.CodeBadArgument, "at"},
		{top + "?zone=7&gap=1", 400, encode.CodeBadArgument, "gap"},
		{"/v1/classes/gift-day/top?zone=7&at=99991231", 400, encode.CodeBadArgument, "at"},
		{"/v1/classes/fans/top?app=7&host=8&at=previous", 400, encode.CodeBadArgument, "at"},
		{"/v1/boards/local/top?at=now", 400, encode.CodeBadArgument, "at"},
		{top + "?zone=7&at=20261122-32", 404, encode.CodeUnknownPeriod, ""},
		{top + "?zone=9", 403, encode.CodeBlocked, ""},
	} {
		checkProblem(t, s.get(t, c.path), c.status, c.code, c.argument)
	}
	if n := env.Origin.Calls.Load(); n != 0 {
		t.Errorf("%d calls to Redis for requests that are refused", n)
	}
}

// TestPeriodsSwitch: not even the same bytes are answered from the period before.
func TestPeriodsSwitch(t *testing.T) {
	env := newClassEnv(t)
	s := env.start(t)
	conns := map[string]*client{}
	const half = "/v1/classes/gift-half-hour/top?zone=7"
	for _, path := range []string{half, half + "&at=previous", half + "&at=20261122-35", half + "&at=20261122-36&profiles=1", "/v1/classes/gift-half-hour/members/m000001?zone=7"} {
		conns[path] = s.dial(t, "tcp")
	}
	for _, c := range []struct{ now, running, previous, tag35, tag36 string }{
		{"2026-11-22T17:20:30+08:00", "35 running", "34 ended", "35 running", "36 upcoming"},
		{"2026-11-22T17:29:59.999999999+08:00", "35 running", "34 ended", "35 running", "36 upcoming"},
		{"2026-11-22T17:30:00+08:00", "36 running", "35 ended", "35 ended", "36 running"},
		{"2026-11-22T17:29:59.9+08:00", "35 running", "34 ended", "35 running", "36 upcoming"}, // the clock is set back
		{"2026-11-22T18:29:59+08:00", "37 running", "36 ended", "35 ended", "36 ended"},
		{"2026-11-22T18:30:00+08:00", "38 running", "37 ended", "gone", "36 ended"},
	} {
		env.set(c.now)
		for path, want := range map[string]string{half: c.running, half + "&at=previous": c.previous, half + "&at=20261122-35": c.tag35,
			half + "&at=20261122-36&profiles=1": c.tag36, "/v1/classes/gift-half-hour/members/m000001?zone=7": c.running} {
			for i := range 4 {
				got := conns[path].ask("GET "+path+hostLine+"\r\n", 1)
				tag, state, _ := strings.Cut(want, " ")
				wanted := strings.Contains(got, fmt.Sprintf(`"board":"gift:7:20261122-%s"`, tag)) && strings.Contains(got, fmt.Sprintf(`"state":"%s"}`, state))
				if want == "gone" {
					wanted = strings.Contains(got, `"code":"unknown_period"`)
				}
				if !wanted {
					t.Errorf("at %s %s, answer %d: %.400s, want %s", c.now, path, i+1, got, want)
				}
			}
		}
	}
	if n := s.answeredFromCache(); n != 4 { // the tops, while their board was local
		t.Errorf("%d of the requests were answered from the request cache", n)
	}
}

// TestClassesFollowTheFile: a request of a class that is in the file no more is not answered
// from the request cache either.
func TestClassesFollowTheFile(t *testing.T) {
	env := newClassEnv(t)
	s := env.start(t)
	conn := s.dial(t, "tcp")
	const request = "GET /v1/classes/gift-half-hour/top?zone=7" + hostLine + "\r\n"
	conn.warm(s, request)
	env.load(t, strings.Replace(classFile, "top: 20", "top: 7", 1))
	for range 4 {
		if got := conn.ask(request, 1); !strings.Contains(got, `"limit":7,`) {
			t.Errorf("after another top: %s", got)
		}
	}
	env.load(t, "")
	for range 4 {
		if got := conn.ask(request, 1); !strings.Contains(got, `"code":"unknown_class"`) {
			t.Errorf("without the class: %s", got)
		}
	}
	if a := s.get(t, "/v1/classes"); a.body != `{"classes":[]}` {
		t.Errorf("no classes: %s", a.body)
	}
}

// Answers by class tell how far the board's life has come in Redis; once period and grace are
// over no copy tells that it is open.
func TestAnswersTellWhatIsLocked(t *testing.T) {
	env := newClassEnv(t)
	s := env.start(t)
	for _, c := range []struct {
		now    string // the period ends at 17:30, its grace 5 s later
		life   rankcache.Life
		locked string
	}{{"17:29:59", 0, "open"}, {"17:30:01", 0, "open"}, {"17:30:06", 0, "closing"}, {"17:30:06", rankcache.LifeClosed, "closed"}, {"17:31:00", rankcache.LifeFinal, "final"}} {
		env.Origin.Life = c.life
		env.set("2026-11-22T" + c.now + "+08:00")
		for _, zone := range []string{"7", "8"} { // a copy, Redis
			want := c.locked
			if zone == "7" && c.life > 0 {
				want = "closing"
			}
			for _, read := range []string{"top", "members/m000001", "top?around=1&me=m000001"} {
				path := "/v1/classes/gift-half-hour/" + read + map[bool]string{true: "&", false: "?"}[strings.Contains(read, "?")] + "zone=" + zone + "&at=20261122-35"
				if a := s.get(t, path); !strings.Contains(a.body, `"locked":"`+want+`"`) {
					t.Errorf("at %s, life %v: %s: %.600s", c.now, c.life, path, a.body)
				}
			}
		}
	}
}

// TestReadsByClassAreReadsByBoard: the answers have the same bytes, but for class and period.
func TestReadsByClassAreReadsByBoard(t *testing.T) {
	s := newClassEnv(t).start(t)
	for _, read := range []string{"/top?limit=20", "/top?limit=5&start=3", "/top?limit=5&order=asc", "/top?limit=5&profiles=1", "/top?limit=5&me=m000003",
		"/top?limit=5&me=m000003&around=2&gap=1", "/top?limit=5&min_seq=3&max_age_ms=0", "/members/m000003?order=asc", "/members/m000003?around=3&profiles=1"} {
		for _, zone := range []string{"7", "8"} {
			board := s.get(t, "/v1/boards/gift:"+zone+":20261122-35"+read)
			byClass := s.get(t, "/v1/classes/gift-half-hour"+read+"&zone="+zone)
			if tail := periodPart.FindString(byClass.body); tail == "" || board.status != 200 ||
				published.ReplaceAllString(strings.Replace(byClass.body, tail, "", 1), "") != published.ReplaceAllString(board.body, "") {
				t.Errorf("%s of zone %s: %d %s, want %s", read, zone, byClass.status, byClass.body, board.body)
			}
			for _, h := range []string{"Rankcache-State", "Rankcache-Source", "Cache-Control", "Vary"} {
				if byClass.header.Get(h) != board.header.Get(h) {
					t.Errorf("%s of zone %s: %s %q, want %q", read, zone, h, byClass.header.Get(h), board.header.Get(h))
				}
			}
			tag := byClass.header.Get("ETag")
			if a := s.get(t, "/v1/classes/gift-half-hour"+read+"&zone="+zone, "If-None-Match", tag); a.status != 304 || tag == board.header.Get("ETag") {
				t.Errorf("%s of zone %s: %d with the tag %s", read, zone, a.status, tag)
			}
		}
	}
}

// TestReadsByClassAllocateNothing: they cost the collector what reads by board do.
func TestReadsByClassAllocateNothing(t *testing.T) {
	if testkit.Race {
		t.Skip("the race detector makes sync.Pool drop what it is given")
	}
	env := newClassEnv(t)
	const id = "gift:7:20261122-35"
	cfg := env.config()
	cfg.Hot, cfg.Tiers = quietHot{env.Hot}, fixture.Tiers(classFile)
	cfg.Boards = fixture.Boards[sidecar.Board]{id: bigBoard(t, id, 20_000)}
	s, err := New(readerOf(t, cfg), env.settings(), slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, read := range []string{"/top?zone=7", "/top?zone=%37&at=now&me=1000900", "/members/1000900?zone=7"} {
		ctx := requestCtx("/v1/classes/gift-half-hour" + read)
		n := testing.AllocsPerRun(200, func() {
			ctx.Response.Reset()
			s.checkHost(ctx)
		})
		if n != 0 || ctx.Response.StatusCode() != 200 {
			t.Errorf("%s: %v allocations, status %d", read, n, ctx.Response.StatusCode())
		}
	}
}

// TestDimensionsAreNoArguments: what is an argument of a read can't be a dimension of a class.
func TestDimensionsAreNoArguments(t *testing.T) {
	for _, name := range argNames {
		if _, err := class.New("x", "x:{"+name+"}", class.Calendar{}); err == nil {
			t.Errorf("a class may have the dimension %s", name)
		}
	}
}

// TestClassLimits: server and document take the same requests. Values of dimensions are not
// among them: validators hold what the document has of those against all arguments.
func TestClassLimits(t *testing.T) {
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	s := newClassEnv(t).start(t)
	const half = "/v1/classes/gift-half-hour"
	for _, l := range []dataLimit{
		{"at", "GET", half + "/top?zone=7&at=%s", "previous", "la_t"},
		{"tag", "GET", half + "/top?zone=7&at=%s", "20261122-34", "20261122_34"},
		{"time", "GET", half + "/top?zone=7&at=%s", "2026-11-22T09:20:00.123Z", "2026-11-22 09:20:00"},
		{"zone of a time", "GET", half + "/members/m000001?zone=7&at=%s", "2026-11-22T09:20:00-00:30", "2026-11-22T09:20:00"},
		{"limit", "GET", half + "/top?zone=7&limit=%s", "1", "501"},
		{"around", "GET", half + "/top?zone=7&me=m&around=%s", "100", "101"},
	} {
		for target, taken := range map[string]bool{l.inside: true, l.outside: false} {
			a := s.do(t, l.method, l.path(target), "")
			if got := a.status != 400; got != taken {
				t.Errorf("%s: the server answers %d %s", l.name, a.status, a.body)
			}
			if err := doc.CheckRequest(apitest.Exchange{Method: l.method, Target: l.path(target)}); (err == nil) != taken {
				t.Errorf("%s: %s and the document: %v, want it taken: %v", l.name, l.path(target), err, taken)
			}
		}
	}
}

// TestDocumentHoldsForClasses asks for the answers that only reads by class have.
func TestDocumentHoldsForClasses(t *testing.T) {
	env := newClassEnv(t)
	env.log = slog.New(slog.DiscardHandler)
	s := env.start(t)
	for _, target := range []string{"/v1/classes/%/top", "/v1/classes/%2/members/a?zone=7"} {
		if got := s.dial(t, "tcp").ask("GET "+target+hostLine+"\r\n", 1); !strings.Contains(got, `"argument":"class"`) {
			t.Errorf("%s: %s", target, got)
		}
	}
	for _, path := range []string{"/v1/classes", "/v1/classes/fans/top?app=1&host=2&profiles=1&me=m000003&around=1", "/v1/classes/gift-half-hour/members/m000001?zone=7&profiles=1"} {
		for method, status := range map[string]int{"GET": 200, "HEAD": 200, "POST": 405} {
			if a := s.do(t, method, path, ""); a.status != status {
				t.Errorf("%s %s: %d %s, want %d", method, path, a.status, a.body, status)
			}
		}
	}
}

// TestIncompleteBoards: what does not have all that it sums up says so in body and header, whatever answers, until it has.
// Other boards never do.
func TestIncompleteBoards(t *testing.T) {
	const file = `
classes:
  - {name: d, board: "d:{zone}:{period}", period: day, ops: [incr], keep: 240h}
  - {name: r, board: "r:{zone}:{period}", rolling: {of: d, last: 3}}
boards:
  - {match: "r:7:20261122", mode: super-hot}
`
	env := newClassEnv(t)
	env.load(t, file)
	cfg := env.config()
	cfg.Tiers = fixture.Tiers(file)
	local := fixture.NewBoard("r:7:20261122", 600, 35)
	cfg.Boards = fixture.Boards[sidecar.Board]{"r:7:20261122": local}
	s := startReader(t, readerOf(t, cfg), env.settings(), fixture.FailOnWarn(t))
	if a := s.get(t, "/v1/classes"); !strings.Contains(a.body, `"ops":[]`) || strings.Contains(a.body, "null") {
		t.Error("a class that no command changes:", a.body)
	}
	for _, primed := range []bool{false, true, false} {
		local.Primed, env.Origin.Primed = primed, primed
		top := fixture.NewTop("r:9:20261122", 600, 100, 35)
		top.Primed = primed
		env.Hot.Set(top)
		for path, want := range map[string]bool{"r:7:20261122": !primed, "r:8:20261122": !primed, "r:9:20261122": !primed, "d:7:20261122": false} {
			for _, read := range []string{"/top?limit=3", "/top?limit=3", "/members/m000001", "/top?limit=3&me=m000001", "/top?limit=3&order=asc"} {
				a := s.get(t, "/v1/boards/"+path+read)
				body, header := strings.Contains(a.body, `"incomplete":true`), a.header.Get("Rankcache-Incomplete")
				if a.status != 200 || body != want || header != map[bool]string{true: "priming"}[want] {
					t.Errorf("%s%s, primed %t: %d, header %q, %s", path, read, primed, a.status, header, a.body)
				}
			}
		}
	}
}
