package httpapi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
	"rankcache/internal/testkit/fixture"
	"rankcache/sidecar"
	"rankcache/sidecar/encode"
)

var update = flag.Bool("update", false, "write the golden bodies anew")

// TestGolden compares whole bodies with testdata, one request a file.
func TestGolden(t *testing.T) {
	s := start(t, newEnv(), Config{})
	for _, c := range []struct{ name, method, path, body string }{
		{"top", "GET", "/v1/boards/local/top?limit=3", ""},
		{"top_asc_deep", "GET", "/v1/boards/local/top?start=2&limit=2&order=asc", ""},
		{"top_me", "GET", "/v1/boards/local/top?limit=2&me=m000900", ""},
		{"top_me_absent", "GET", "/v1/boards/tiny/top?me=nobody", ""},
		{"top_profiles", "GET", "/v1/boards/tiny/top?profiles=1&me=m000001", ""},
		{"top_own", "GET", "/v1/boards/local/top?limit=2&me=m000900&around=1&gap=1", ""},
		{"top_own_first", "GET", "/v1/boards/tiny/top?me=m000000&gap=1&order=desc", ""},
		{"top_own_asc", "GET", "/v1/boards/tiny/top?me=m000000&around=1&gap=1&order=asc", ""},
		{"top_own_absent", "GET", "/v1/boards/tiny/top?me=nobody&around=1&gap=1&profiles=1", ""},
		{"top_own_profiles", "GET", "/v1/boards/tiny/top?me=m000002&around=1&gap=1&profiles=1", ""},
		{"top_own_redis", "GET", "/v1/boards/1_2_3/top?start=3&limit=2&me=m000009&around=1&gap=1&profiles=1", ""},
		{"top_own_hot", "GET", "/v1/boards/hot/top?limit=2&me=m000050&around=1&gap=1", ""},
		{"top_own_hot_redis", "GET", "/v1/boards/hot/top?limit=2&me=m000100&around=1&gap=1", ""},
		{"boards_batch", "POST", "/v1/boards:batch", `{"boards":[{"board":"tiny","limit":1,"me":"m000002","around":1,"gap":true,"profiles":true},` +
			`{"board":"shut"},{"board":"1_2_3","start":1,"limit":1,"order":"asc","me":"nobody"},{"board":"hot","limit":1,"room":"99"},{"board":"hot","limit":1,"me":"m000100"}]}`},
		{"top_hot", "GET", "/v1/boards/hot/top?limit=2", ""},
		{"top_redis", "GET", "/v1/boards/1_2_3/top?limit=2", ""},
		{"top_past_end", "GET", "/v1/boards/local/top?start=57000", ""},
		{"member", "GET", "/v1/boards/local/members/m000009", ""},
		{"member_asc", "GET", "/v1/boards/1_2_3/members/m000009?order=asc", ""},
		{"member_profiles", "GET", "/v1/boards/local/members/m000009?profiles=1", ""},
		{"around", "GET", "/v1/boards/local/members/m000001?around=2", ""},
		{"around_profiles", "GET", "/v1/boards/tiny/members/m000001?around=1&profiles=1", ""},
		{"batch", "POST", "/v1/boards/local/members:batch", `{"members":["m000004","no \"body\"","m000000"]}`},
		{"batch_profiles", "POST", "/v1/boards/local/members:batch?profiles=1", `{"members":["m000004","xno","late"]}`},
		{"profile", "GET", "/v1/profiles/m000004", ""},
		{"profiles_batch", "POST", "/v1/profiles:batch", `{"members":["m000004","xno","late"]}`},
		{"blocked", "GET", "/v1/boards/shut/top", ""},
		{"unknown_member", "GET", "/v1/boards/local/members/nobody", ""},
		{"bad_argument", "GET", "/v1/boards/local/top?limit=501", ""},
		{"unknown_argument", "GET", "/v1/boards/local/top?limt=5", ""},
		{"write_lost", "GET", "/v1/boards/local/top?min_state=1838429319476737-917-0a1b2c3d4e5f", ""},
		{"write_lost_redis", "GET", "/v1/boards/1_2_3/top?min_state=1838429319476737-13-0a1b2c3d4e5f", ""},
		{"unknown_state", "GET", "/v1/boards/local/top?min_state=1838429319476736-917-0a1b2c3d4e5f", ""},
		{"seq_not_reached", "GET", "/v1/boards/local/top?min_seq=918&wait_ms=1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := s.do(t, c.method, c.path, c.body)
			golden(t, c.name, ages.ReplaceAllString(a.body, `"age_ms":0`))
			if !json.Valid([]byte(a.body)) {
				t.Error("the body is not JSON")
			}
		})
	}
}

var ages = regexp.MustCompile(`"age_ms":\d+`)

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(file, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSuffix(string(want), "\n"), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestRefusals checks status, code and argument of what is wrong.
func TestRefusals(t *testing.T) {
	env := newEnv()
	s := start(t, env, Config{})
	long := strings.Repeat("m", rankcache.MaxMemberLen+1)
	for _, c := range []struct {
		method, path, body string
		status             int
		code               encode.Code
		argument           string
	}{
		{"GET", "/", "", 404, encode.CodeUnknownPath, ""},
		{"GET", "/v1/boards/local", "", 404, encode.CodeUnknownPath, ""},
		{"GET", "/v1/boards//top", "", 400, encode.CodeBadArgument, "board"},
		{"GET", "/v1/boards/a%20b/top", "", 400, encode.CodeBadArgument, "board"},
		{"GET", "/v1/boards/rankcache:rooms/top", "", 400, encode.CodeBadArgument, "board"},
		{"GET", "/v1/boards/rankcache%3Arooms/members/a", "", 400, encode.CodeBadArgument, "board"},
		{"GET", "/v1/boards/a/b/top", "", 404, encode.CodeUnknownPath, ""},
		{"GET", "/v1/boards/local/top/", "", 404, encode.CodeUnknownPath, ""},
		{"GET", "/v1/boards/local/members/", "", 400, encode.CodeBadArgument, "member"},
		{"GET", "/v1/boards/local/members/%00", "", 400, encode.CodeBadArgument, "member"},
		{"GET", "/v1/boards/local/members/%ff", "", 400, encode.CodeBadArgument, "member"},
		{"GET", "/v1/boards/local/members/" + long, "", 400, encode.CodeBadArgument, "member"},
		{"GET", "/v1/boards/local/members/a/b", "", 404, encode.CodeUnknownPath, ""},
		{"GET", "/v1/boards/local/members/a%2Fb", "", 404, encode.CodeUnknownMember, ""},
		{"GET", "/v1/boards/local/top?limit=0", "", 400, encode.CodeBadArgument, "limit"},
		{"GET", "/v1/boards/local/top?limit=501", "", 400, encode.CodeBadArgument, "limit"},
		{"GET", "/v1/boards/local/top?limit=", "", 400, encode.CodeBadArgument, "limit"},
		{"GET", "/v1/boards/local/top?limit=1e2", "", 400, encode.CodeBadArgument, "limit"},
		{"GET", "/v1/boards/local/top?limit=99999999999999999999999", "", 400, encode.CodeBadArgument, "limit"},
		{"GET", "/v1/boards/local/top?start=-1", "", 400, encode.CodeBadArgument, "start"},
		{"GET", "/v1/boards/local/top?order=up", "", 400, encode.CodeBadArgument, "order"},
		{"GET", "/v1/boards/local/top?profiles=yes", "", 400, encode.CodeBadArgument, "profiles"},
		{"GET", "/v1/boards/local/top?me=", "", 400, encode.CodeBadArgument, "me"},
		{"GET", "/v1/boards/local/top?me=%2", "", 400, encode.CodeBadArgument, "me"},
		{"GET", "/v1/boards/local/top?room=", "", 400, encode.CodeBadArgument, "room"},
		{"GET", "/v1/boards/local/top?limit=5&limit=6", "", 400, encode.CodeBadArgument, "limit"},
		{"GET", "/v1/boards/local/top?around=4", "", 400, encode.CodeBadArgument, "around"},
		{"GET", "/v1/boards/local/members/a?around=101", "", 400, encode.CodeBadArgument, "around"},
		{"GET", "/v1/boards/local/members/a?limit=4", "", 400, encode.CodeBadArgument, "limit"},
		{"GET", "/v1/boards/local/top?max_age_ms=-1", "", 400, encode.CodeBadArgument, "max_age_ms"},
		{"GET", "/v1/boards/local/top?max_age_ms=86400001", "", 400, encode.CodeBadArgument, "max_age_ms"},
		{"GET", "/v1/boards/local/top?min_seq=9007199254740993", "", 400, encode.CodeBadArgument, "min_seq"},
		{"GET", "/v1/boards/local/top?min_state=917", "", 400, encode.CodeBadArgument, "min_state"},
		{"GET", "/v1/boards/local/top?min_state=0-917-", "", 400, encode.CodeBadArgument, "min_state"},
		{"POST", "/v1/profiles:batch?min_state=1-1-", `{"members":["a"]}`, 400, encode.CodeBadArgument, "min_state"},
		{"GET", "/v1/boards/local/top?wait_ms=5001", "", 400, encode.CodeBadArgument, "wait_ms"},
		{"POST", "/v1/profiles:batch?min_seq=1", `{"members":["a"]}`, 400, encode.CodeBadArgument, "min_seq"},
		{"GET", "/v1/boards/shut/top", "", 403, encode.CodeBlocked, ""},
		{"GET", "/v1/boards/shut/members/a", "", 403, encode.CodeBlocked, ""},
		{"GET", "/v1/boards/local/top?room=99", "", 403, encode.CodeBlocked, ""},
		{"GET", "/v1/profiles/xno", "", 404, encode.CodeUnknownProfile, ""},
		{"GET", "/v1/profiles/late", "", 503, encode.CodeNoProfiles, ""},
		{"POST", "/v1/boards/local/top", "", 405, encode.CodeBadMethod, ""},
		{"DELETE", "/v1/boards/local/members/a", "", 405, encode.CodeBadMethod, ""},
		{"GET", "/v1/boards/local/members:batch", "", 405, encode.CodeBadMethod, ""},
		{"POST", "/v1/boards/local/members:batch", `{"members":[]}`, 400, encode.CodeBadArgument, "members"},
		{"POST", "/v1/boards/local/members:batch", `{"members":[""]}`, 400, encode.CodeBadArgument, "members"},
		{"POST", "/v1/boards/local/members:batch", `{"members":["\ud800"]}`, 400, encode.CodeBadArgument, "members"},
		{"POST", "/v1/boards/local/members:batch", `{"members":["a"],"members":["b"]}`, 400, encode.CodeBadArgument, "members"},
		{"POST", "/v1/boards/local/members:batch", `{"Members":["a"]}`, 400, encode.CodeBadArgument, "members"},
		{"POST", "/v1/boards:batch", `{"boards":[{"board":"local","board":"small"}]}`, 400, encode.CodeBadArgument, "boards"},
		{"POST", "/v1/boards/local/members:batch", `{"members":[1]}`, 400, encode.CodeBadArgument, "members"},
		{"POST", "/v1/boards/local/members:batch", `{"members":["a",null]}`, 400, encode.CodeBadArgument, "members"},
		{"POST", "/v1/boards/local/members:batch", `{"member":["a"]}`, 400, encode.CodeBadArgument, "members"},
		{"POST", "/v1/boards/local/members:batch", `{"members":["a"]}{}`, 400, encode.CodeBadArgument, "members"},
		{"POST", "/v1/boards/local/members:batch", "{\"members\":[\"\xff\"]}", 400, encode.CodeBadArgument, "members"},
		{"POST", "/v1/boards/local/members:batch", ``, 400, encode.CodeBadArgument, "members"},
		{"GET", "/v1/boards/local/top?gap=1", "", 400, encode.CodeBadArgument, "gap"},
		{"GET", "/v1/boards/local/top?me=a&gap=2", "", 400, encode.CodeBadArgument, "gap"},
		{"GET", "/v1/boards/local/members/a?gap=1", "", 400, encode.CodeBadArgument, "gap"},
		{"GET", "/v1/boards:batch", "", 405, encode.CodeBadMethod, ""},
		{"POST", "/v1/boards:batch?profiles=1", `{"boards":[{"board":"a"}]}`, 400, encode.CodeBadArgument, "profiles"},
		{"POST", "/v1/boards:batch", ``, 400, encode.CodeBadArgument, "boards"},
		{"POST", "/v1/boards:batch", `{"boards":[]}`, 400, encode.CodeBadArgument, "boards"},
		{"POST", "/v1/boards:batch", `{"boards":["a"]}`, 400, encode.CodeBadArgument, "boards"},
		{"POST", "/v1/boards:batch", `{"boards":[{"board":"a"}]}[]`, 400, encode.CodeBadArgument, "boards"},
		{"POST", "/v1/boards:batch", `{"boards":[{"board":"a","min_seq":1}]}`, 400, encode.CodeBadArgument, "boards"},
		{"POST", "/v1/boards:batch", `{"boards":[{"board":"a","me":"` + "\xff" + `"}]}`, 400, encode.CodeBadArgument, "boards"},
		{"POST", "/v1/boards:batch", `{"boards":` + strings.Repeat("[", 12000), 400, encode.CodeBadArgument, "boards"},
		{"POST", "/v1/boards:batch", `{"boards":[{"board":` + strings.Repeat(`{"a":`, 5000), 400, encode.CodeBadArgument, "boards"},
		{"POST", "/v1/boards:batch", `{"boards":[{"board":"local"},{"limit":5}]}`, 400, encode.CodeBadArgument, "board"},
		{"POST", "/v1/boards:batch", `{"boards":[{"board":"a","gap":true}]}`, 400, encode.CodeBadArgument, "gap"},
		{"POST", "/v1/boards:batch", `{"boards":[{"board":"a","around":3}]}`, 400, encode.CodeBadArgument, "around"},
		{"POST", "/v1/boards:batch", `{"boards":[` + strings.Repeat(" ", maxBoardsBody) + `]}`, 413, encode.CodeBodyTooLarge, ""},
		{"POST", "/v1/boards/local/members:batch", `{"members":["a"` + strings.Repeat(`,"a"`, 500) + `]}`, 400, encode.CodeBadArgument, "members"},
	} {
		t.Run(c.method+" "+c.path[:min(60, len(c.path))], func(t *testing.T) {
			a := s.do(t, c.method, c.path, c.body)
			checkProblem(t, a, c.status, c.code, c.argument)
		})
	}
	if n := env.Origin.Calls.Load(); n != 0 {
		t.Errorf("%d calls to Redis for requests that are refused", n)
	}
}

// TestUnreadableBoard: what Redis has of one board can't be served. The answer says so, and
// others are answered beside it.
func TestUnreadableBoard(t *testing.T) {
	env := newEnv()
	s := start(t, env, Config{})
	env.Origin.FailBoard("small", fmt.Errorf("redis page: %w: key \"small\" holds the score +Inf of member \"a\"", rankcache.ErrUnreadable))
	for _, path := range []string{"/v1/boards/small/top", "/v1/boards/small/members/a"} {
		a := s.do(t, "GET", path, "")
		if checkProblem(t, a, 409, encode.CodeUnreadable, ""); !strings.Contains(a.body, `+Inf of member \"a\"`) || a.header.Get("Retry-After") != "" {
			t.Errorf("%s: %s, Retry-After %q", path, a.body, a.header.Get("Retry-After"))
		}
	}
	if a := s.do(t, "POST", "/v1/boards:batch", `{"boards":[{"board":"small"},{"board":"local"}]}`); a.status != 200 || !strings.Contains(a.body, `"code":"unreadable"`) || !strings.Contains(a.body, `"board":"local"`) {
		t.Error(a.status, a.body)
	}
}

func checkProblem(t *testing.T, a answer, status int, code encode.Code, argument string) {
	t.Helper()
	var p struct {
		Status         int
		Title          string
		Code           encode.Code
		Argument       string
		Detail         string
		Type, Instance string
	}
	dec := json.NewDecoder(strings.NewReader(a.body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		t.Fatalf("%v in %q", err, a.body)
	}
	if a.status != status || p.Status != status || p.Code != code || p.Argument != argument || p.Title == "" {
		t.Errorf("%d %s, want %d %s %s", a.status, a.body, status, code, argument)
	}
	if ct := a.header.Get("Content-Type"); ct != "application/problem+json" {
		t.Errorf("Content-Type %q", ct)
	}
	if (status == 503) != (a.header.Get("Retry-After") != "") || (status == 405) != (a.header.Get("Allow") != "") {
		t.Errorf("header %v", a.header)
	}
}

func TestConditional(t *testing.T) {
	env := newEnv()
	s := start(t, env, Config{})
	for _, path := range []string{
		"/v1/boards/local/top", "/v1/boards/local/top?start=600", "/v1/boards/local/top?me=m000900",
		"/v1/boards/hot/top", "/v1/boards/any/top", "/v1/boards/local/members/m000001", "/v1/boards/any/members/m000001?around=1",
	} {
		first := s.get(t, path)
		tag := first.header.Get("ETag")
		for _, known := range []string{tag, `"other", ` + tag, "*", "W/" + strings.TrimPrefix(tag, "W/")} {
			a := s.get(t, path, "If-None-Match", known)
			if a.status != 304 || a.body != "" || a.header.Get("ETag") != tag || a.header.Get("Rankcache-Source") == "" {
				t.Errorf("%s with %s: %d %v %q", path, known, a.status, a.header, a.body)
			}
		}
		if a := s.get(t, path, "If-None-Match", `"other"`); a.status != 200 || a.body == "" {
			t.Errorf("%s with another tag: %d", path, a.status)
		}
		env.Local.Publish(env.Local.Head.Load().Seq + 1)
		env.Hot.Set(fixture.NewTop("hot", 2000, 100, env.Local.Head.Load().Seq))
		env.Origin.Seq.Add(1)
		if a := s.get(t, path, "If-None-Match", tag); a.status != 200 || a.header.Get("ETag") == tag {
			t.Errorf("%s after a change: %d %v", path, a.status, a.header)
		}
	}
}

// TestSameBytes: a body is the same for as long as the top is; what changes by
// itself is in headers.
func TestSameBytes(t *testing.T) {
	env := newEnv()
	s := start(t, env, Config{})
	a, b := s.get(t, "/v1/boards/local/top"), s.get(t, "/v1/boards/local/top")
	if a.body != b.body {
		t.Error("the same top has two bodies")
	}
	env.Local.At = env.Local.At.Add(1e9)
	if c := s.get(t, "/v1/boards/local/top"); c.body != a.body || c.header.Get("Rankcache-Age-Ms") == a.header.Get("Rankcache-Age-Ms") {
		t.Error("the age is not in the header alone")
	}
}

func TestHead(t *testing.T) {
	s := start(t, newEnv(), Config{})
	get, head := s.get(t, "/v1/boards/local/top"), s.do(t, "HEAD", "/v1/boards/local/top", "")
	for _, h := range []string{"Content-Length", "Content-Type", "ETag", "Rankcache-Source"} {
		if get.header.Get(h) == "" || get.header.Get(h) != head.header.Get(h) {
			t.Errorf("%s: HEAD has %q, GET %q", h, head.header.Get(h), get.header.Get(h))
		}
	}
	if head.status != 200 || head.body != "" {
		t.Errorf("HEAD: %d %q", head.status, head.body)
	}
}

func TestCompression(t *testing.T) {
	s := start(t, newEnv(), Config{})
	for _, path := range []string{"/v1/boards/local/top", "/v1/boards/hot/top", "/v1/boards/any/top?limit=500"} {
		plain := s.get(t, path)
		for coding, unpack := range map[string]func([]byte) ([]byte, error){"gzip": gunzip, "zstd": unzstd} {
			a := s.get(t, path, "Accept-Encoding", coding)
			body, err := unpack([]byte(a.body))
			if err != nil || a.header.Get("Content-Encoding") != coding || !sameRows(plain.body, string(body)) {
				t.Errorf("%s %s: %v, %v", path, coding, a.header, err)
			}
			if len(a.body) >= len(plain.body) || a.header.Get("ETag") == plain.header.Get("ETag") || a.header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s %s: %d bytes of %d, header %v", path, coding, len(a.body), len(plain.body), a.header)
			}
			if again := s.get(t, path, "Accept-Encoding", coding, "If-None-Match", a.header.Get("ETag")); again.status != 304 {
				t.Errorf("%s %s: %d to its own tag", path, coding, again.status)
			}
		}
	}
}

func gunzip(p []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(p))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func unzstd(p []byte) ([]byte, error) {
	r, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.DecodeAll(p, nil)
}

func sameRows(a, b string) bool {
	_, a, _ = strings.Cut(a, `"entries"`)
	_, b, _ = strings.Cut(b, `"entries"`)
	return a == b && a != ""
}

// TestOriginAway: reads that need Redis are 503; local pages are answered,
// with an error in place of the caller's own standing.
func TestOriginAway(t *testing.T) {
	env := newEnv()
	var logged syncBuffer
	env.log = slog.New(slog.NewTextHandler(&logged, nil))
	s := start(t, env, Config{})
	env.Origin.FailWith(errors.New("dial tcp 10.1.2.3:6379: password hunter2"))
	for path, status := range map[string]int{
		"/v1/boards/any/top": 503, "/v1/boards/any/members/m000001": 503, "/v1/boards/any/members/m000001?around=1": 503,
		"/v1/boards/filling/top": 503, "/v1/boards/hot/top?start=90": 503, "/v1/boards/hot/members/m000001": 503,
		"/v1/boards/local/top": 200, "/v1/boards/hot/top": 200, "/v1/boards/local/members/m000001": 200,
	} {
		a := s.get(t, path)
		if strings.Contains(a.body, "hunter2") || strings.Contains(a.body, "10.1.2.3") {
			t.Errorf("%s: %s", path, a.body)
		}
		if a.status != status {
			t.Errorf("%s: %d, want %d", path, a.status, status)
		} else if status == 503 {
			checkProblem(t, a, 503, encode.CodeUnavailable, "")
		}
	}
	if logged.lines() == 0 {
		t.Error("nothing was logged")
	}
	a := s.get(t, "/v1/boards/hot/top?limit=1&me=m000500")
	if a.status != 200 || !strings.HasSuffix(a.body, `"me":null,"me_error":"origin_unavailable"}`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// syncBuffer is a log that several goroutines write.
type syncBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *syncBuffer) lines() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Count(b.all.Bytes(), []byte("\n"))
}

// TestDecodedMembers: percent-encoding in a path or an argument is decoded to the
// member's id, whatever bytes it has.
func TestDecodedMembers(t *testing.T) {
	env := newEnv()
	s := start(t, env, Config{})
	for path, want := range map[string]string{
		"/v1/boards/%6cocal/members/m%30%30%30001":              `"member":"m000001"`,
		"/v1/boards/local/top?limit=1&me=%6d000001":             `"me":{"rank":2,"member":"m000001"`,
		"/v1/boards/local/top?limit=1&me=a+b%2Bc%26d&room=r%20": `"me":null`,
	} {
		if a := s.get(t, path); a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	a := s.get(t, "/v1/profiles/%E5%90%8D%2F%22+1")
	if !strings.HasPrefix(a.body, `{"member":"名/\"+1",`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestProfilesNotConfigured(t *testing.T) {
	env := newEnv()
	cfg := env.config()
	cfg.Profiles = nil
	r := readerOf(t, cfg)
	s, err := New(r, Config{}, fixture.FailOnWarn(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	for path, status := range map[string]int{"/v1/boards/local/top?profiles=1": 400, "/v1/boards/local/top?profiles=0": 200, "/v1/profiles/a": 404} {
		ctx := requestCtx(path)
		if s.handle(ctx); ctx.Response.StatusCode() != status {
			t.Errorf("%s: %s", path, ctx.Response.String())
		}
	}
}

// TestProfilesRefresh: a kept page is used again while its profiles are the
// newest, and made anew when one of them has changed.
func TestProfilesRefresh(t *testing.T) {
	env := newEnv()
	s := start(t, env, Config{})
	const path = "/v1/boards/tiny/top?profiles=1"
	a, b := s.get(t, path), s.get(t, path)
	if a.body != b.body || env.Profiles.Joins.Load() != 1 {
		t.Errorf("%d joins for one page", env.Profiles.Joins.Load())
	}
	env.Profiles.Epoch.Add(1)
	c := s.get(t, path, "If-None-Match", a.header.Get("ETag"))
	if c.status != 200 || !strings.Contains(c.body, `"v":1`) || strings.Contains(c.body, `"v":0`) {
		t.Errorf("after a refresh: %d %s", c.status, c.body)
	}
}

// TestBoundsOverHTTP: the arguments mean what the fields of a query mean, and the
// caller's own standing keeps to them as the page does.
func TestBoundsOverHTTP(t *testing.T) {
	env := newEnv()
	env.Local.At = time.Now().Add(-time.Minute)
	env.Origin.Seq.Store(1000)
	s := start(t, env, Config{})
	for path, source := range map[string]string{
		"/v1/boards/local/top?max_age_ms=600000":               "local",
		"/v1/boards/local/top?max_age_ms=30000":                "redis",
		"/v1/boards/local/top?max_age_ms=0":                    "redis",
		"/v1/boards/local/top?min_seq=0&wait_ms=5000":          "local",
		"/v1/boards/local/top?min_seq=917&me=m000900":          "local",
		"/v1/boards/local/top?min_seq=918&me=m000900&limit=10": "redis",
		"/v1/boards/local/members/m000009?min_seq=918":         "redis",
		"/v1/boards/local/members/m000009?min_seq=1":           "local",
	} {
		if a := s.get(t, path); a.status != 200 || a.header.Get("Rankcache-Source") != source {
			t.Errorf("%s: %d from %s, want %s: %s", path, a.status, a.header.Get("Rankcache-Source"), source, a.body)
		}
	}
	env.Origin.Seq.Store(900)
	for _, path := range []string{"top?me=m000009&", "members/m000009?", "members/m000009?around=1&", "members/nobody?around=1&"} {
		a := s.get(t, "/v1/boards/local/"+path+"min_seq=918")
		if a.status != 409 || !strings.Contains(a.body, `"code":"seq_not_reached","seq":900`) {
			t.Errorf("%s: %d %s, want 409 with Redis's seq", path, a.status, a.body)
		}
	}
	if a := s.do(t, "POST", "/v1/boards/local/members:batch?min_seq=918", `{"members":["m000009"]}`); a.status != 409 {
		t.Errorf("batch: %d %s", a.status, a.body)
	}
}

// TestMetrics: names and help pass the linter, requests are counted by what
// became of them, and two readers on one registry are an error.
func TestMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	env := newEnv()
	r, err := sidecar.NewReader(env.config(), reg)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(r, Config{}, fixture.FailOnWarn(t), reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"local/top", "local/top", "hot/top", "any/top", "shut/top", "any/members/nobody"} {
		s.handle(requestCtx("/v1/boards/" + path))
	}
	unchanged := requestCtx("/v1/boards/hot/top")
	unchanged.Request.Header.Set("If-None-Match", "*")
	s.handle(unchanged)
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	want := `
# HELP rankcache_requests_total Requests to the data listener, by route, result (ok, not_modified or the code of the error) and source of the answer.
# TYPE rankcache_requests_total counter
rankcache_requests_total{result="blocked",route="top",source=""} 1
rankcache_requests_total{result="not_modified",route="top",source="hot"} 1
rankcache_requests_total{result="ok",route="top",source="hot"} 1
rankcache_requests_total{result="ok",route="top",source="local"} 2
rankcache_requests_total{result="ok",route="top",source="redis"} 1
rankcache_requests_total{result="unknown_member",route="member",source=""} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "rankcache_requests_total"); err != nil {
		t.Error(err)
	}
	want = `
# HELP rankcache_origin_calls_total Reads sent to Redis, by operation and result (ok, unavailable, overloaded, panic, error).
# TYPE rankcache_origin_calls_total counter
rankcache_origin_calls_total{op="page",result="ok"} 1
rankcache_origin_calls_total{op="standings",result="ok"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "rankcache_origin_calls_total"); err != nil {
		t.Error(err)
	}
	if _, err := sidecar.NewReader(env.config(), reg); err == nil {
		t.Error("two readers on one registry")
	}
}

// TestNoSuchKey: the page of a board that Redis does not have reports that.
func TestNoSuchKey(t *testing.T) {
	env := newEnv()
	s := start(t, env, Config{})
	const path = "/v1/boards/any/top"
	if note := s.get(t, path).header.Get("Rankcache-Note"); note != "" {
		t.Errorf("of a board: %q", note)
	}
	env.Origin.N.Store(0)
	for _, path := range []string{path, path + "?me=m000001", path + "?order=asc"} {
		a := s.get(t, path)
		if note := a.header.Get("Rankcache-Note"); a.status != 200 || note != "no such key in Redis" || !strings.Contains(a.body, `"total":0,`) {
			t.Errorf("%s: %d %q %s", path, a.status, note, a.body)
		}
	}
}
