package httpapi

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"rankcache"
	"rankcache/internal/testkit/apitest"
	"rankcache/sidecar"
	"rankcache/sidecar/encode"
)

// document is loaded once for all tests of the package: every exchange that they
// have with a server is held against it.
var document = sync.OnceValues(func() (*apitest.Document, error) { return apitest.Load(sidecar.OpenAPI()) })

// inDocument checks one exchange.
func inDocument(t testing.TB, e apitest.Exchange) {
	t.Helper()
	doc, err := document()
	if err != nil {
		t.Error("openapi.yaml: ", err) // not Fatal: some tests ask from goroutines
		return
	}
	if err := doc.Check(e); err != nil {
		t.Errorf("%s %s against openapi.yaml: %v", e.Method, e.Target, err)
	}
}

// operationOf is what a route is called in the document.
var operationOf = map[route]string{
	routeTop:         "GET /v1/boards/{board}/top",
	routeMember:      "GET /v1/boards/{board}/members/{member}",
	routeBatch:       "POST /v1/boards/{board}/members:batch",
	routeProfile:     "GET /v1/profiles/{member}",
	routeProfiles:    "POST /v1/profiles:batch",
	routeReference:   "GET /openapi.yaml",
	routeClasses:     "GET /v1/classes",
	routeClassTop:    "GET /v1/classes/{class}/top",
	routeClassMember: "GET /v1/classes/{class}/members/{member}",
	routeClassBatch:  "POST /v1/classes/{class}/members:batch",
	routeScore:       "GET /v1/boards/{board}/scores/{score}",
	routeClassScore:  "GET /v1/classes/{class}/scores/{score}",
	routeBoards:      "POST /v1/boards:batch",
}

// TestDocumentHasTheDataRoutes, all of them and no others.
func TestDocumentHasTheDataRoutes(t *testing.T) {
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	in := doc.Operations("data")
	for r := routeNone + 1; r < routes; r++ {
		if r == routeCompat { // internal/app checks it, with that of the writer
			continue
		}
		if !in[operationOf[r]] {
			t.Errorf("route %v is not in the document", r)
		}
		delete(in, operationOf[r])
	}
	for op := range in {
		t.Errorf("%s is in the document, but no route", op)
	}
}

// TestDocumentHasTheCodes: a caller finds every code there.
func TestDocumentHasTheCodes(t *testing.T) {
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	codes := doc.Codes()
	for _, info := range encode.Codes {
		if !codes[string(info.Code)] {
			t.Errorf("code %s is not in the document", info.Code)
		}
	}
}

// TestDocumentHolds asks for every answer of the data routes that a request of
// its own can bring about; the exchanges are checked on the way.
func TestDocumentHolds(t *testing.T) {
	env := newEnv()
	env.log = slog.New(slog.DiscardHandler) // Redis fails on purpose
	s := start(t, env, Config{})
	const members = `{"members":["m000001","nobody","late"]}`
	expect := func(status int, method, path, body string, header ...string) {
		t.Helper()
		if a := s.do(t, method, path, body, header...); a.status != status {
			t.Errorf("%s %s: %d %s, want %d", method, path, a.status, a.body, status)
		}
	}
	for _, path := range []string{"/v1/boards/local/top?profiles=1&me=m000001", "/v1/boards/local/top?profiles=1&me=m000001&around=2&gap=1", "/v1/boards/any/top?start=5&limit=3&order=asc&room=88",
		"/v1/boards/local/top?me=m000001&rank_mode=dense&percentile=1&around=1&profiles=1", "/v1/boards/any/members/m000001?rank_mode=competition&percentile=1",
		"/v1/boards/local/members/m000001?around=2&profiles=1", "/v1/boards/local/members/m000001?around=2&profiles=1&rank_mode=dense&percentile=1", "/v1/boards/any/members/m000001?min_seq=1&max_age_ms=9&wait_ms=1",
		"/v1/profiles/m000001", "/openapi.yaml"} {
		expect(200, "GET", path, "")
		expect(200, "HEAD", path, "")
		expect(405, "DELETE", path, "")
		expect(421, "GET", path, "", "Host", "evil.example")
	}
	for _, path := range []string{"/v1/boards/local/members:batch?profiles=1", "/v1/profiles:batch"} {
		expect(200, "POST", path, members)
		expect(405, "GET", path, "")
		expect(400, "POST", path, `{"member":"a"}`)
		expect(421, "POST", path, members, "Host", "evil.example")
	}
	expect(422, "GET", "/v1/boards/any/top?rank_mode=dense", "")
	expect(422, "GET", "/v1/boards/any/members/m000001?rank_mode=dense", "")
	expect(404, "GET", "/v1/boards/any/members/nobody?percentile=1", "")
	for _, path := range []string{"/v1/boards/local/top", "/v1/boards/local/members/m000001"} {
		tag := s.get(t, path).header.Get("Etag")
		expect(304, "GET", path, "", "If-None-Match", tag)
		expect(400, "GET", path+"?limt=5", "")
		expect(409, "GET", path+"?min_seq=918", "")
		expect(412, "GET", path+"?min_state=1-1-", "")
		expect(412, "GET", path, "", "If-Match", `"other"`)
	}
	const boards = `{"boards":[{"board":"local","me":"m000002","around":1,"gap":true,"profiles":true},{"board":"shut"},{"board":"any","me":"m000001","percentile":true},{"board":"any","rank_mode":"dense"}]}`
	expect(200, "POST", "/v1/boards:batch", boards)
	expect(405, "GET", "/v1/boards:batch", "")
	expect(400, "POST", "/v1/boards:batch", members)
	expect(421, "POST", "/v1/boards:batch", boards, "Host", "evil.example")
	expect(413, "POST", "/v1/boards:batch", strings.Repeat(" ", maxBoardsBody+1))
	expect(400, "GET", "/v1/boards/a%20b/top", "")
	expect(409, "POST", "/v1/boards/local/members:batch?min_seq=918", members)
	expect(412, "POST", "/v1/boards/local/members:batch?min_state=1-1-", members)
	expect(403, "GET", "/v1/boards/shut/top", "")
	expect(403, "GET", "/v1/boards/shut/members/a", "")
	expect(403, "POST", "/v1/boards/shut/members:batch", members)
	expect(404, "GET", "/v1/boards/local/members/nobody", "")
	expect(404, "GET", "/v1/profiles/xno", "")
	expect(503, "GET", "/v1/profiles/late", "")
	expect(400, "GET", "/openapi.yaml?x=1", "")
	expect(404, "GET", "/v1/nothing", "")
	env.Origin.FailWith(rankcache.ErrUnavailable)
	expect(503, "GET", "/v1/boards/any/top", "")
	expect(503, "GET", "/v1/boards/any/members/a", "")
	expect(503, "POST", "/v1/boards/any/members:batch", members)
	expect(503, "GET", "/v1/boards/any/top?me=m000001&gap=1", "")
	expect(200, "POST", "/v1/boards:batch", boards) // each board has its problem
	expect(200, "GET", "/v1/boards/hot/top?me=m000500&gap=1", "")
	env.Origin.FailWith(sidecar.ErrFault)
	expect(500, "GET", "/v1/boards/any/top", "")
	env.Origin.FailWith(sidecar.ErrOverloaded)
	expect(503, "GET", "/v1/boards/any/top?me=m000001", "")
	env.Origin.FailWith(errors.New("WRONGTYPE"))
	expect(200, "GET", "/v1/boards/hot/top?me=nobody", "") // me_error
}
