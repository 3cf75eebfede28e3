package rpc

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rankcache"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
	v1 "rankcache/proto/rankcache/v1"
	"rankcache/rooms"
	"rankcache/sidecar/httpapi"
)

// TestPageIsThatOfTheDataPort: a page event has the body of GET …/top, and id and run.
func TestPageIsThatOfTheDataPort(t *testing.T) {
	clock, file := classClock()
	e := start(t, func(c *Config) { c.Now, c.Classes = clock.now, file })
	data, err := httpapi.New(e.reader, httpapi.Config{Classes: file, Now: clock.now}, fixture.FailOnWarn(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	ln := testkit.Listen(t, "tcp")
	served := make(chan error, 1)
	go func() { served <- data.Serve(t.Context(), ln) }()
	t.Cleanup(func() { <-served })
	for _, of := range []string{"boards/local/*?limit=5", "boards/local/*?order=asc&limit=3&profiles=1", "boards/hot/*", "boards/elsewhere/*?limit=7",
		"classes/gift/*?zone=eu", "classes/gift/*?zone=eu&limit=2&at=previous", "classes/ever/*"} {
		res, err := http.Get("http://" + ln.Addr().String() + "/v1/" + strings.Replace(of, "*", "top", 1))
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]any
		err = json.NewDecoder(res.Body).Decode(&want)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(of, res.Status, err)
		}
		stream := e.watch("/v1/"+strings.Replace(of, "*", "live", 1), "", nil)
		ev := stream.want("page")
		if ev.data["id"] != ev.id || ev.id == "" || ev.data["run"] != float64(fixture.Written.Run) {
			t.Errorf("%s: id %q, run %v", of, ev.id, ev.data["run"])
		}
		delete(ev.data, "id")
		delete(ev.data, "run")
		if diff := gocmp.Diff(want, ev.data); diff != "" {
			t.Errorf("%s (-data port +stream):\n%s", of, diff)
		}
		_ = stream.close()
	}
}

func TestChangesArePushed(t *testing.T) {
	e := start(t)
	h2 := new(http.Protocols)
	h2.SetUnencryptedHTTP2(true)
	seq := uint64(917) // rises, as a board's does
	for name, protocols := range map[string]*http.Protocols{"HTTP/1.1": nil, "HTTP/2": h2} {
		e.publish(seq)
		s := e.watch("/v1/boards/local/live?limit=2", "", protocols)
		first := s.wantSeq(seq)
		e.publish(seq + 1)
		if ev := s.wantSeq(seq + 1); ev.id == first.id {
			t.Errorf("%s: %+v after %s", name, ev, first.id)
		}
		_ = s.close()
		e.publish(seq + 2)
		s = e.watch("/v1/boards/local/live?limit=2", first.id, protocols)
		s.wantSeq(seq + 2) // the change before may come first: further ones are 50 ms apart
		_ = s.close()
		seq += 10
	}
}

// wantSeq reads pages until one of that seq.
func (s *events) wantSeq(seq uint64) event {
	s.t.Helper()
	for {
		if ev := s.want("page"); ev.data["seq"] == float64(seq) { // both rows differ: the page is shorter
			return ev
		}
	}
}

func TestDrainEndsStreams(t *testing.T) {
	e := start(t)
	s := e.watch("/v1/boards/local/live", "", nil)
	s.want("page")
	e.Drain()
	for _, s := range []*events{s, e.watch("/v1/boards/local/live", "", nil)} {
		if ev := s.want("end"); ev.data["code"] != "draining" || ev.retry == "" || ev.id != "" {
			t.Errorf("%+v", ev)
		}
		if ev, more := s.next(); more {
			t.Errorf("%+v behind the end", ev)
		}
	}
}

func TestBlockedEndsStreams(t *testing.T) {
	e := start(t)
	s := e.watch("/v1/boards/local/live", "", nil)
	s.want("page")
	e.tiers.Store(fixture.Tiers("boards:\n  - {match: local, mode: blocked}\n")())
	e.Changed("local")
	if ev := s.want("end"); ev.data["code"] != "blocked" {
		t.Errorf("%+v", ev)
	}
	wantProblem(t, e, "/v1/boards/local/live", 403, "blocked")
}

func wantProblem(t *testing.T, e *env, path string, status int, code string) {
	t.Helper()
	res, err := http.Get(e.url(path))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var p struct{ Code string }
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil || res.StatusCode != status || p.Code != code {
		t.Errorf("%s: %s, code %q (%v), want %d %s", path, res.Status, p.Code, err, status, code)
	}
}

func TestRefused(t *testing.T) {
	clock, file := classClock()
	e := start(t, func(c *Config) { c.Now, c.Classes = clock.now, file })
	for path, want := range map[string]string{
		"/v1/boards/shut/live":                       "403 blocked",
		"/v1/boards/a%20b/live":                      "400 bad_argument",
		"/v1/boards/local/live?limit=0":              "400 bad_argument",
		"/v1/boards/local/live?limit=501":            "400 bad_argument",
		"/v1/boards/local/live?limit=5&limit=6":      "400 bad_argument",
		"/v1/boards/local/live?limt=5":               "400 bad_argument",
		"/v1/boards/local/live?order=up":             "400 bad_argument",
		"/v1/boards/local/live?profiles=yes":         "400 bad_argument",
		"/v1/boards/local/live?room=%01":             "400 bad_argument",
		"/v1/boards/local/live?x=%zz":                "400 bad_argument",
		"/v1/boards/local/live?at=now":               "400 bad_argument",
		"/v1/boards/local":                           "404 unknown_path",
		"/v1/boards/local/top":                       "404 unknown_path",
		"/v1/classes/none/live":                      "404 unknown_class",
		"/v1/classes/gift/live":                      "400 bad_argument",
		"/v1/classes/gift/live?zone=e:u":             "400 bad_argument",
		"/v1/classes/gift/live?zone=eu&zon=1":        "400 bad_argument",
		"/v1/classes/gift/live?zone=eu&at=yesterday": "400 bad_argument",
		"/v1/classes/gift/live?zone=eu&at=20200101":  "404 unknown_period",
		"/v1/classes/gift/live?zone=eu&limit=51":     "400 bad_argument",
		"/v1/classes/ever/live?at=previous":          "400 bad_argument",
	} {
		var status int
		var code string
		_, _ = fmt.Sscan(want, &status, &code)
		wantProblem(t, e, path, status, code)
	}
}

// fakeClock is a clock that tests set.
type fakeClock struct{ nanos atomic.Int64 }

func (c *fakeClock) now() time.Time { return time.Unix(0, c.nanos.Load()) }

// classClock returns a clock and a rooms file with classes.
func classClock() (*fakeClock, func() *rooms.File) {
	file, err := rooms.Parse([]byte(`
classes:
  - {name: gift, board: "gift:{zone}:{period}", period: day, tz: UTC, top: 50, keep: 72h}
  - {name: ever, board: "ever", period: none}
  - {name: ladder, board: "ladder:{period}", seasons: [{tag: s1, from: 2026-11-01T00:00:00Z, to: 2026-11-23T00:00:00Z}, {tag: s2, from: 2026-11-23T13:00:00Z, to: 2026-11-24T00:00:00Z}]}
`))
	if err != nil {
		panic(err)
	}
	clock := &fakeClock{}
	clock.nanos.Store(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC).UnixNano())
	return clock, func() *rooms.File { return file }
}

// TestStreamEndsWithTheSeason: behind the last season a stream of the running one tells that there is none.
func TestStreamEndsWithTheSeason(t *testing.T) {
	end := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	began := time.Now()
	clock := func() time.Time { return end.Add(time.Since(began) - 300*time.Millisecond) }
	_, file := classClock()
	e := start(t, func(c *Config) { c.Now, c.Classes = clock, file })
	s := e.watch("/v1/classes/ladder/live", "", nil)
	if page, ended := s.want("page"), s.want("end"); page.data["board"] != "ladder:s2" || ended.data["code"] != "deleted" {
		t.Errorf("%v, then %v", page.data, ended.data)
	}
}

// TestStreamGoesOverToTheNextPeriod: a stream of a class shows the board of the present.
func TestStreamGoesOverToTheNextPeriod(t *testing.T) {
	midnight := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	began := time.Now()
	clock := func() time.Time { return midnight.Add(time.Since(began) - 300*time.Millisecond) }
	_, file := classClock()
	e := start(t, func(c *Config) { c.Now, c.Classes = clock, file })
	s := e.watch("/v1/classes/gift/live?zone=eu", "", nil)
	before, after := s.want("page"), s.want("page")
	if before.data["board"] != "gift:eu:20261123" || after.data["board"] != "gift:eu:20261124" {
		t.Errorf("boards %v, then %v", before.data["board"], after.data["board"])
	}
	if p := after.data["period"].(map[string]any); p["state"] != "running" || p["tag"] != "20261124" {
		t.Errorf("period %v", p)
	}
}

// TestSlowReaderIsClosed: a client that takes nothing keeps its place for the write timeout.
func TestSlowReaderIsClosed(t *testing.T) {
	e := start(t, func(c *Config) { c.WriteTimeout = 100 * time.Millisecond })
	c := dial(t, e.addr)
	if err := c.SetReadBuffer(1); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "GET /v1/boards/local/live?limit=500&profiles=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
	e.closesSlowReader()
}

// TestSlowReaderOverHTTP2IsClosed: the connection takes on, but the client gives the stream no
// window.
func TestSlowReaderOverHTTP2IsClosed(t *testing.T) {
	watch, err := proto.Marshal(&v1.WatchRequest{Address: &v1.Address{Board: "local"}, Limit: 500, Profiles: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ method, path, content, body string }{
		"events": {"GET", "/v1/boards/local/live?limit=500&profiles=1", "", ""},
		"Watch":  {"POST", "/rankcache.v1.Boards/Watch", "application/grpc", string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(watch)))) + string(watch)},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, func(c *Config) { c.WriteTimeout = 100 * time.Millisecond })
			transport := &http.Transport{Protocols: new(http.Protocols), HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}}
			transport.Protocols.SetUnencryptedHTTP2(true)
			t.Cleanup(transport.CloseIdleConnections)
			req, err := http.NewRequestWithContext(t.Context(), c.method, e.url(c.path), strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if c.content != "" {
				req.Header.Set("Content-Type", c.content)
				req.Header.Set("Te", "trailers")
			}
			res, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			e.closesSlowReader()
		})
	}
}

// closesSlowReader changes the board "local" until the one stream that it has is closed.
func (e *env) closesSlowReader() {
	t := e.t
	t.Helper()
	testkit.Eventually(t, 5*time.Second, func() error {
		if e.hub.Streams() != 1 {
			return errors.New("no stream")
		}
		return nil
	})
	for seq, until := uint64(918), time.Now().Add(20*time.Second); e.hub.Streams() != 0; seq++ {
		if time.Now().After(until) {
			t.Fatal("the stream is still open")
		}
		e.publish(seq)
		time.Sleep(time.Millisecond)
	}
}

// TestGoneReaders: a client that is gone, or that can't be sent to any more, frees its place.
func TestGoneReaders(t *testing.T) {
	e := start(t, func(c *Config) { c.Heartbeat = 200 * time.Millisecond })
	for name, leave := range map[string]func(c *net.TCPConn) error{
		"closed":      (*net.TCPConn).Close,
		"reset":       func(c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) },
		"half-closed": (*net.TCPConn).CloseWrite,
	} {
		c := dial(t, e.addr)
		_, _ = io.WriteString(c, "GET /v1/boards/local/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if _, err := c.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		if err := leave(c); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, 5*time.Second, func() error {
			if n := e.hub.Streams(); n != 0 {
				return fmt.Errorf("%s: %d streams", name, n)
			}
			return nil
		})
	}
}

// TestHostileRequests: none of them costs more than its connection.
func TestHostileRequests(t *testing.T) {
	e := startLogging(t, slog.New(slog.DiscardHandler)) // net/http warns of them
	for _, request := range []string{
		"GET /v1/boards/local/live HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"POST /v1/boards/local/live HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
		"GET /v1/boards/" + strings.Repeat("x", 9000) + "/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /v1/boards/local/live?" + strings.Repeat("a&", 3000) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"*1\r\n$4\r\nPING\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("\x00", 100),
	} {
		c := dial(t, e.addr)
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = io.WriteString(c, request)
		answer := make([]byte, 20)
		if n, _ := c.Read(answer); strings.Contains(string(answer[:n]), " 200 ") {
			t.Errorf("%.60q is answered %q", request, answer[:n])
		}
		_ = c.Close()
	}
	if n := e.hub.Streams(); n != 0 {
		t.Errorf("%d streams", n)
	}
	e.watch("/v1/boards/local/live", "", nil).want("page")
}

// TestStreamsHaveConnections: as many streams as may be open each have a connection, and other
// requests have some beside. At the cap a stream would be reset for each new one.
func TestStreamsHaveConnections(t *testing.T) {
	for _, streams := range []int{0, 7, 20_000} {
		e := start(t, func(c *Config) { c.Streams = streams })
		if want := cmp.Or(streams, DefaultStreams) + DefaultMaxConns; e.cfg.MaxConns != want {
			t.Errorf("%d streams, %d connections, want %d", streams, e.cfg.MaxConns, want)
		}
	}
}

// TestStreamOutlivesTimeouts: reading the request is limited to seconds, a stream is not.
func TestStreamOutlivesTimeouts(t *testing.T) {
	e := start(t, func(c *Config) { c.ReadTimeout, c.Heartbeat = 100*time.Millisecond, 200*time.Millisecond })
	s := e.watch("/v1/boards/local/live", "", nil)
	s.want("page")
	if ev := s.want("age"); ev.data["source"] != rankcache.SourceLocal.String() || ev.data["age_ms"].(float64) <= 0 || ev.id != "" {
		t.Errorf("%+v", ev)
	}
	e.publish(918)
	s.want("page")
}

// TestDrainingStreamsComeBackLater: who came back at once would be sent away until the drain is over.
func TestDrainingStreamsComeBackLater(t *testing.T) {
	e := start(t, func(c *Config) { c.Drain = time.Minute })
	s := e.watch("/v1/boards/local/live", "", nil)
	s.want("page")
	e.Drain()
	if ms, err := strconv.Atoi(s.want("end").retry); err != nil || ms < 50_000 || ms > 61_000 {
		t.Errorf("come back after %d ms, %v: want the rest of the drain", ms, err)
	}
}

// TestLastPeriodOfTheCalendar: the end of each period can be told in all formats.
func TestLastPeriodOfTheCalendar(t *testing.T) {
	clock, file := classClock()
	e := start(t, func(c *Config) { c.Now, c.Classes = clock.now, file })
	for at, ok := range map[string]bool{"99981231": true, "99990101": false, "99991231": false} {
		res, err := http.Get(e.url("/v1/classes/gift/live?zone=eu&at=" + at))
		if err != nil {
			t.Fatal(err)
		}
		if got := res.StatusCode == http.StatusOK; got != ok {
			t.Errorf("%s: a stream is answered with %s", at, res.Status)
		}
		_ = res.Body.Close()
		for name, call := range e.callers() {
			err := call(t.Context(), "GetTop", &v1.GetTopRequest{Address: &v1.Address{Class: "gift", Dimensions: map[string]string{"zone": "eu"}, At: at}}, &v1.GetTopResponse{})
			if (err == nil) != ok {
				t.Errorf("%s: %s: %v", at, name, err)
			}
		}
	}
}

// TestStreamsHaveALifetime: a stream ends by itself, and its client goes on from where it was.
func TestStreamsHaveALifetime(t *testing.T) {
	e := start(t, func(c *Config) { c.Lifetime, c.Heartbeat = 50*time.Millisecond, 10*time.Millisecond })
	e.publish(917)
	s := e.watch("/v1/boards/local/live?limit=2", "", nil)
	first := s.wantSeq(917)
	for ev, ok := s.next(); ev.name != "end" || ev.data["code"] != "draining"; ev, ok = s.next() {
		if !ok || ev.name != "age" {
			t.Fatalf("%+v, %t: want that the stream ends", ev, ok)
		}
	}
	_ = s.close()
	e.publish(918)
	again := e.watch("/v1/boards/local/live?limit=2", first.id, nil)
	again.wantSeq(918)
	_ = again.close()
}
