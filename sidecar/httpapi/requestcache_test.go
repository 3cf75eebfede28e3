package httpapi

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rankcache"

	"rankcache/internal/httpserve"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
	"rankcache/rooms"
	"rankcache/sidecar/internal/conn"
)

// client is one connection to a data server.
type client struct {
	*testing.T
	conn net.Conn
	in   *bufio.Reader
}

func (r *running) dial(t *testing.T, network string) *client {
	t.Helper()
	conn, err := net.Dial(network, map[string]string{"tcp": r.tcp, "unix": r.unix}[network])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second)) // a server that does not answer fails the test soon
	return &client{t, conn, bufio.NewReader(conn)}
}

// changing matches the headers in which two equal answers may differ.
var changing = regexp.MustCompile(`(Date: [^\r]{29}|Rankcache-Age-Ms: \d+)\r\n`)

// ask sends bytes and returns the bytes of as many answers.
func (c *client) ask(request string, answers int) string {
	c.Helper()
	send(c.T, c.conn, request)
	var got bytes.Buffer
	in := bufio.NewReader(io.TeeReader(c.in, &got))
	for range answers {
		method := &http.Request{Method: strings.SplitN(request, " ", 2)[0]}
		res, err := http.ReadResponse(in, method)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
		}
		if err != nil {
			c.Fatalf("%v after %q", err, got.String())
		}
	}
	return got.String()
}

// answeredFromCache returns how many connections have answered a cached request.
func (s *Server) answeredFromCache() (n int) {
	for _, c := range s.conns.All() {
		if c.answeredFromCache() {
			n++
		}
	}
	return n
}

// answeredFromCache reports whether c has: nothing else composes a header.
func (c *clientConn) answeredFromCache() bool { return len(c.head) > 0 }

const hostLine = " HTTP/1.1\r\nHost: localhost\r\n"

// TestCachedRequests: the same bytes get the same answer, byte by byte, whether
// they are parsed or found in the request cache.
func TestCachedRequests(t *testing.T) {
	for name, c := range map[string]struct {
		request string
		answers int
		cached  bool // in the end it is answered from the request cache
	}{
		"top of a local board":      {"GET /v1/boards/local/top" + hostLine + "\r\n", 1, true},
		"ten rows":                  {"GET /v1/boards/local/top?limit=10" + hostLine + "\r\n", 1, true},
		"rows from the middle":      {"GET /v1/boards/local/top?limit=10&start=20" + hostLine + "\r\n", 1, true},
		"escaped, with a room":      {"GET /v1/boards/%6cocal/top?room=88" + hostLine + "\r\n", 1, true},
		"profiles":                  {"GET /v1/boards/local/top?profiles=1" + hostLine + "\r\n", 1, true},
		"hot board":                 {"GET /v1/boards/hot/top?limit=50" + hostLine + "\r\n", 1, true},
		"small board":               {"GET /v1/boards/tiny/top" + hostLine + "\r\n", 1, true},
		"gzip":                      {"GET /v1/boards/local/top" + hostLine + "Accept-Encoding: gzip\r\n\r\n", 1, true},
		"zstd":                      {"GET /v1/boards/local/top" + hostLine + "accept-encoding: gzip, zstd\r\n\r\n", 1, true},
		"gzip of a small board":     {"GET /v1/boards/tiny/top" + hostLine + "Accept-Encoding: gzip\r\n\r\n", 1, true},
		"stay":                      {"GET /v1/boards/local/top" + hostLine + "Connection: keep-alive\r\n\r\n", 1, true},
		"other fields":              {"GET /v1/boards/local/top" + hostLine + "user-agent: a\r\nX-Any: b\r\n\r\n", 1, true},
		"a body":                    {"GET /v1/boards/local/top" + hostLine + "Content-Length: 3\r\n\r\nabc", 1, false},
		"HEAD":                      {"HEAD /v1/boards/local/top" + hostLine + "\r\n", 1, false},
		"HTTP/1.0":                  {"GET /v1/boards/local/top HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n", 1, false},
		"unless it is this":         {"GET /v1/boards/local/top" + hostLine + "If-None-Match: \"0\"\r\n\r\n", 1, true},
		"unless it is any":          {"GET /v1/boards/local/top" + hostLine + "If-None-Match: *\r\n\r\n", 1, true},
		"the same, packed":          {"GET /v1/boards/local/top" + hostLine + "Accept-Encoding: zstd\r\nif-none-match: W/\"0\", *\r\n\r\n", 1, true},
		"no older than":             {"GET /v1/boards/local/top?min_seq=5" + hostLine + "\r\n", 1, false},
		"with oneself":              {"GET /v1/boards/local/top?me=m000007" + hostLine + "\r\n", 1, false},
		"a standing":                {"GET /v1/boards/local/members/m000007" + hostLine + "\r\n", 1, false},
		"beyond the head":           {"GET /v1/boards/local/top?start=5000" + hostLine + "\r\n", 1, false},
		"the worst":                 {"GET /v1/boards/local/top?order=asc" + hostLine + "\r\n", 1, false},
		"a board in Redis":          {"GET /v1/boards/any/top" + hostLine + "\r\n", 1, false},
		"no board":                  {"GET /v1/boards/shut/top" + hostLine + "\r\n", 1, false},
		"wrong argument":            {"GET /v1/boards/local/top?limit=0" + hostLine + "\r\n", 1, false},
		"two at once":               {strings.Repeat("GET /v1/boards/local/top"+hostLine+"\r\n", 2), 2, true},
		"a standing and a top":      {"GET /v1/boards/local/members/m000007" + hostLine + "\r\nGET /v1/boards/local/top" + hostLine + "\r\n", 2, true},
		"a top and a standing":      {"GET /v1/boards/local/top" + hostLine + "\r\nGET /v1/boards/local/members/m000007" + hostLine + "\r\n", 2, false},
		"a wrong host and a top":    {"GET /v1/boards/tiny/top HTTP/1.1\r\nHost: evil\r\n\r\nGET /v1/boards/local/top" + hostLine + "\r\n", 2, true},
		"too long to be remembered": {"GET /v1/boards/local/top" + hostLine + "X: " + strings.Repeat("x", maxCachedRequest) + "\r\n\r\n", 1, false},
	} {
		for _, network := range []string{"tcp", "unix"} {
			t.Run(name+" "+network, func(t *testing.T) {
				s := start(t, newEnv(), Config{})
				conn := s.dial(t, network)
				first := conn.ask(c.request, c.answers)
				for i := range 6 {
					got := conn.ask(c.request, c.answers)
					if changing.ReplaceAllString(got, "") != changing.ReplaceAllString(first, "") {
						t.Fatalf("answer %d is\n%s\nwant\n%s", i+2, got, first)
					}
					if n := len(changing.FindAllString(got, -1)); n != len(changing.FindAllString(first, -1)) {
						t.Fatalf("answer %d has other fields:\n%s\nwant\n%s", i+2, got, first)
					}
				}
				if got := s.answeredFromCache() == 1; got != c.cached {
					t.Errorf("cached %v, want %v", got, c.cached)
				}
			})
		}
	}
}

// TestCachedRequestsOwnTheirStrings: the memory of the request that was recorded
// is overwritten by the next.
func TestCachedRequestsOwnTheirStrings(t *testing.T) {
	s := start(t, newEnv(), Config{})
	for _, board := range []string{"local", "%6cocal"} {
		conn := s.dial(t, "unix")
		conn.warm(s, "GET /v1/boards/"+board+"/top?room=88"+hostLine+"\r\n")
		conn.ask("GET /v1/boards/%6ether"+"/top?room=99"+hostLine+"\r\n", 1)
		conn.ask("GET /v1/boards/other"+"/top?room=99"+hostLine+"\r\n", 1)
		for i := range s.only().requests.cached {
			if q := s.only().requests.cached[i].Load(); q != nil && (q.query.Board != "local" || q.query.Room != "88") {
				t.Errorf("%q now asks for %+v", q.request, q.query)
			}
		}
		conn.conn.Close()
	}
}

// warm has the connection ask until its request is cached.
func (c *client) warm(s *running, request string) (answer string) {
	c.Helper()
	for range 4 {
		answer = c.ask(request, 1)
	}
	if s.answeredFromCache() == 0 {
		c.Fatalf("%q is not cached", request)
	}
	return answer
}

const topRequest = "GET /v1/boards/local/top?profiles=1" + hostLine + "\r\n"

// TestCachedRequestsFollowTheBoard: a cached request gets what is true now.
func TestCachedRequestsFollowTheBoard(t *testing.T) {
	env := newEnv()
	var tiers atomic.Pointer[rooms.Tiers]
	set := func(rooms string) { tiers.Store(fixture.Tiers(rooms)()) }
	set(fixture.Rooms)
	cfg := env.config()
	cfg.Tiers = tiers.Load
	s := startReader(t, readerOf(t, cfg), Config{}, fixture.FailOnWarn(t))
	conn := s.dial(t, "unix")
	for _, step := range []struct {
		name   string
		change func()
		want   string
		asks   int // of which fasthttp answers the first, if it is a change
	}{
		{"at first", func() {}, `"source":"local","seq":917,`, 3},
		{"published", func() { env.Local.Publish(918) }, `"source":"local","seq":918,`, 3},
		{"other profiles", func() { env.Profiles.Epoch.Store(5) }, `"nick":"N-m000000","v":5}`, 3},
		{"not super-hot", func() { set("boards:\n  - {match: \"9_*\", mode: blocked}") }, `"source":"redis"`, 3},
		{"blocked", func() { set("boards:\n  - {match: \"lo*\", mode: blocked}") }, "HTTP/1.1 403 ", 3},
		{"super-hot again", func() { set(fixture.Rooms) }, `"source":"local","seq":918,`, 3},
		{"draining", s.Drain, "Connection: close\r\n", 1},
	} {
		step.change()
		if step.name == "at first" {
			conn.warm(s, topRequest)
		}
		for range step.asks {
			if got := conn.ask(topRequest, 1); !strings.Contains(got, step.want) {
				t.Fatalf("%s: want %s in\n%s", step.name, step.want, got)
			}
		}
	}
}

// TestCachedIfNoneMatch: a caller that has the page gets 304, until there is another.
func TestCachedIfNoneMatch(t *testing.T) {
	env := newEnv()
	s := start(t, env, Config{})
	conn := s.dial(t, "tcp")
	_, rest, _ := strings.Cut(conn.ask(topRequest, 1), "Etag: ")
	tag, _, _ := strings.Cut(rest, "\r\n")
	request := strings.Replace(topRequest, "\r\n\r\n", "\r\nIf-None-Match: "+tag+"\r\n\r\n", 1)
	if got := conn.warm(s, request); !strings.HasPrefix(got, "HTTP/1.1 304 ") {
		t.Errorf("%s", got)
	}
	if n := s.counters.sum(routeTop, outcomeNotModified); n != 4 {
		t.Errorf("%d answers are counted as not modified, want 4", n)
	}
	env.Local.Publish(918)
	for range 3 {
		if got := conn.ask(request, 1); !strings.HasPrefix(got, "HTTP/1.1 200 ") || !strings.Contains(got, `"seq":918,`) {
			t.Errorf("%s", got)
		}
	}
}

// TestListenersCacheApart: what the socket lets pass TCP does not.
func TestListenersCacheApart(t *testing.T) {
	s := start(t, newEnv(), Config{})
	request := "GET /v1/boards/local/top HTTP/1.1\r\nHost: evil.example\r\n\r\n"
	s.dial(t, "unix").warm(s, request)
	conn := s.dial(t, "tcp")
	for range 6 {
		if got := conn.ask(request, 1); !strings.HasPrefix(got, "HTTP/1.1 421 ") {
			t.Fatalf("%s", got)
		}
	}
}

// TestCachedRequestsAreCounted: each read counts once, cached or not.
func TestCachedRequestsAreCounted(t *testing.T) {
	const asked = 50
	env := newEnv()
	s := start(t, env, Config{})
	conn := s.dial(t, "tcp")
	for i := range asked {
		if i == asked/2 {
			env.Local.Publish(918) // fasthttp answers the next one
		}
		conn.ask(topRequest, 1)
	}
	if n := s.counters.sum(routeTop, outcome(rankcache.SourceLocal)); n != asked || env.Hot.Reads.Load() != asked {
		t.Errorf("%d requests and %d reads of %d are counted", n, env.Hot.Reads.Load(), asked)
	}
}

// TestCachedRequestsAllocateNothing measures whole exchanges.
func TestCachedRequestsAllocateNothing(t *testing.T) {
	if testkit.Race {
		t.Skip("under the race detector answers are sent otherwise")
	}
	env := newEnv()
	cfg := env.config()
	cfg.Hot = quietHot{env.Hot}
	s := startReader(t, readerOf(t, cfg), Config{}, fixture.FailOnWarn(t))
	conn := s.dial(t, "unix")
	answer, request := []byte(conn.warm(s, topRequest)), []byte(topRequest)
	n := testing.AllocsPerRun(500, func() {
		_, err := conn.conn.Write(request)
		if _, readErr := io.ReadFull(conn.conn, answer); err != nil || readErr != nil {
			t.Fatal(err, readErr)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// stuck has a connection request pages, one by one, and read none of them, until the
// server is in the middle of an answer. It returns how many bytes were requested in all.
func (c *client) stuck(s *running) (served *clientConn, bytes int) {
	c.Helper()
	const request = "GET /v1/boards/local/top?limit=500" + hostLine + "\r\n"
	answer := len(c.warm(s, request))
	served = s.only()
	for asked := uint64(5); asked < 10_000; asked++ {
		send(c.T, c.conn, request)
		bytes += answer
		testkit.Eventually(c.T, 20*time.Second, func() error {
			if n := s.counters.sum(routeTop, outcome(rankcache.SourceLocal)); n < asked {
				return fmt.Errorf("%d requests of %d are read", n, asked)
			}
			return nil
		})
		for range 20 {
			if served.Place().Stage() == conn.Uninterruptible {
				time.Sleep(time.Millisecond)
			}
		}
		if served.Place().Stage() == conn.Uninterruptible {
			return served, bytes
		}
	}
	c.Fatal("the server can send as much as it likes")
	return nil, 0
}

// TestCloseWaitsForCachedAnswer: closing a connection, at the end or to make room for
// another, does not cut the answer to a cached request.
func TestCloseWaitsForCachedAnswer(t *testing.T) {
	s := start(t, newEnv(), Config{})
	conn := s.dial(t, "unix")
	served, want := conn.stuck(s)
	if err := served.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn.in)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		t.Fatal(err)
	}
	if len(got) != want {
		t.Errorf("%d bytes, want %d: whole answers to all requests", len(got), want)
	}
}

// TestCachedAnswersAreCutOff: a client that reads no answers does not hold a connection.
func TestCachedAnswersAreCutOff(t *testing.T) {
	s := start(t, newEnv(), Config{WriteTimeout: 300 * time.Millisecond})
	s.dial(t, "unix").stuck(s)
	testkit.Eventually(t, 20*time.Second, func() error {
		if n := s.conns.Len(); n > 0 {
			return fmt.Errorf("%d connections are open", n)
		}
		return nil
	})
}

// only returns the one connection.
func (s *Server) only() *clientConn {
	for _, c := range s.conns.All() {
		return c
	}
	return nil
}

// TestCachedRequestsRenewTimeouts: time-outs begin again with each cached request.
func TestCachedRequestsRenewTimeouts(t *testing.T) {
	const limit = time.Second
	s := start(t, newEnv(), Config{WriteTimeout: limit, IdleTimeout: limit})
	conn := s.dial(t, "unix")
	conn.warm(s, topRequest)
	for began := time.Now(); time.Since(began) < 2*limit; time.Sleep(limit / 50) {
		conn.ask(topRequest, 1)
	}
}

// TestCachedRequestsGoIdle: a connection without a further request counts as idle when
// room is made, and is closed as any other.
func TestCachedRequestsGoIdle(t *testing.T) {
	s := start(t, newEnv(), Config{IdleTimeout: 300 * time.Millisecond})
	conn := s.dial(t, "tcp")
	conn.warm(s, topRequest)
	served := s.only()
	testkit.Eventually(t, 20*time.Second, func() error { // the answer is here before the server is done with it
		if stage := served.Place().Stage(); stage != httpserve.Idle {
			return fmt.Errorf("between requests its stage is %d", stage)
		}
		return nil
	})
	if n, err := conn.in.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read %d bytes, %v; want the end", n, err)
	}
}

// script is a connection on which each read gets one of the pieces, in turn, or the rest
// of one, until as many pieces were begun as there are reads.
type script struct {
	net.Conn // nil: no other method is called
	pieces   []string
	rest     string // of the piece in hand: reads may have less room
	reads    int
	each     func() // called before each read
	out      bytes.Buffer
}

func (c *script) Read(p []byte) (int, error) {
	c.each()
	if c.rest == "" {
		if c.reads--; c.reads < 0 {
			return 0, io.EOF
		}
		c.rest = c.pieces[0]
		c.pieces = append(c.pieces[1:], c.rest)
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *script) Write(p []byte) (int, error)      { return c.out.Write(p) }
func (c *script) SetReadDeadline(time.Time) error  { return nil }
func (c *script) SetWriteDeadline(time.Time) error { return nil }
func (c *script) Close() error                     { return nil }
func (c *script) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *script) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// TestPieces: a request that comes in pieces is not recorded by the first of them.
func TestPieces(t *testing.T) {
	const times = 6
	s, err := New(newEnv().reader(), Config{}, fixture.FailOnWarn(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &script{pieces: []string{topRequest[:40], topRequest[40:]}, reads: 2 * times, each: func() {}}
	conn := newConn(c, s, new(requestCache))
	if err := s.server(testkit.Listen(t, "tcp")).ServeConn(conn); err != nil {
		t.Fatal(err)
	}
	codes := statuses(t, c.out.String())
	if slices.ContainsFunc(codes, func(code int) bool { return code != http.StatusOK }) || len(codes) != times || conn.answeredFromCache() {
		t.Errorf("answers %v, cached %v", codes, conn.answeredFromCache())
	}
}

// FuzzCachedRequests has any bytes come again and again, on a connection with a
// request cache and on one whose cache is emptied at once. Both must answer the same.
func FuzzCachedRequests(f *testing.F) {
	const times = 5
	top := "GET /v1/boards/local/top?limit=3" + hostLine
	for _, bytes := range []string{
		top + "\r\n", top + "Content-Length: 2\r\n\r\nab", top + "Accept-Encoding: gzip\r\n\r\n", top + "Connection: close\r\n\r\n",
		top + "Expect: 100-Continue\r\n\r\n", top + "Connection: foo\r\nConnection: Close\r\n\r\n",
		top + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX: y\r\n\r\n" + top + "\r\n",
		"GET /v1/boards/local/top?limit=3 HTTP/1.1\nHost: localhost\n\nGET /v1/boards/tiny/top" + hostLine + "\r\n",
		"\r\n" + top + "Expect: 100-continue\r\n\r\n", top + "\r\n" + top + "\r\nGET", "HEAD /v1/boards/tiny/top" + hostLine + "\r\n",
		"GET /v1/boards/tiny/top HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n", top + "If-None-Match: *\r\n\r\n",
	} {
		f.Add(bytes)
	}
	env := newEnv()
	env.log = slog.New(slog.DiscardHandler)
	s, err := New(env.reader(), Config{}, env.log, nil)
	if err != nil {
		f.Fatal(err)
	}
	srv := s.server(testkit.Listen(f, "tcp"))
	serve := func(bytes string, forget bool) string {
		c := &script{pieces: []string{bytes}, reads: times}
		requests := new(requestCache)
		c.each = func() {
			if forget {
				*requests = requestCache{}
			}
		}
		_ = srv.ServeConn(newConn(c, s, requests)) // it ends with what is wrong with the bytes
		return changing.ReplaceAllString(c.out.String(), "")
	}
	f.Fuzz(func(t *testing.T, bytes string) {
		if got, want := serve(bytes, false), serve(bytes, true); got != want {
			t.Errorf("%q is answered by\n%s\nwant\n%s", bytes, got, want)
		}
	})
}

func send(t *testing.T, to net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(to, text); err != nil {
		t.Error(err)
	}
}
