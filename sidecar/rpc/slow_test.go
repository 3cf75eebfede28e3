package rpc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"rankcache/internal/testkit"
)

// longPage asks for a page of some 50 KB at each event.
const longPage = "/v1/boards/local/live?limit=500&profiles=1"

// request sends a request over a connection of its own, by whose window the server can send
// a few pages ahead, and returns the connection.
func (e *env) request(method, path, rest string) *net.TCPConn {
	e.t.Helper()
	c := dial(e.t, e.addr)
	if err := errors.Join(c.SetReadBuffer(32<<10), c.SetDeadline(time.Now().Add(20*time.Second))); err != nil {
		e.t.Fatal(err)
	}
	if _, err := io.WriteString(c, method+" "+path+" HTTP/1.1\r\nHost: localhost\r\n"+rest); err != nil {
		e.t.Fatal(err)
	}
	return c
}

// answer reads the head of an answer and returns it, and the events that follow.
func (e *env) answer(c *net.TCPConn, method string) (*http.Response, *events) {
	e.t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = res.Body.Close() })
	s := &events{e.t, bufio.NewScanner(res.Body), res.Body.Close}
	s.lines.Buffer(nil, 1<<20)
	return res, s
}

// fill changes the board until the connection of its one stream takes no more.
func (e *env) fill() (seq uint64) {
	e.t.Helper()
	e.awaitStreams(1)
	for seq = 918; seq < 1300; seq++ {
		e.publish(seq)
		time.Sleep(time.Millisecond)
	}
	return seq
}

func (e *env) awaitStreams(want int) {
	e.t.Helper()
	testkit.Eventually(e.t, 10*time.Second, func() error {
		if n := e.hub.Streams(); n != want {
			return fmt.Errorf("%d streams, want %d", n, want)
		}
		return nil
	})
}

// TestStreamEndsItsConnection: an answer without length or chunks ends with the connection.
func TestStreamEndsItsConnection(t *testing.T) {
	e := start(t)
	c := e.request("GET", "/v1/boards/local/live", "\r\n")
	res, s := e.answer(c, "GET")
	_, err := http.ParseTime(res.Header.Get("Date"))
	if !res.Close || len(res.TransferEncoding) > 0 || res.ContentLength != -1 || err != nil {
		t.Errorf("%v %v %v, date: %v", res.Header, res.TransferEncoding, res.ContentLength, err)
	}
	s.want("page")
	e.Drain()
	s.want("end")
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("%d bytes and %v behind the end", n, err)
	}
	e.awaitStreams(0)
}

// TestSlowReaderGetsTheNewest: a client that stops for a while gets what it was sent when it
// stopped, whole, and then the newest state.
func TestSlowReaderGetsTheNewest(t *testing.T) {
	e := start(t)
	c := e.request("GET", longPage, "\r\n")
	newest := e.fill()
	_, s := e.answer(c, "GET")
	e.publish(newest)
	got, last := 0, 0.0
	for ; last != float64(newest); got++ {
		ev, ok := s.next()
		if !ok || ev.name != "page" && ev.name != "diff" || ev.data["seq"].(float64) <= last {
			t.Fatalf("event %d is %s %s behind seq %v (%v)", got, ev.name, ev.id, last, s.lines.Err())
		}
		last = ev.data["seq"].(float64)
	}
	if sent := int(newest - 917); got > sent/2 {
		t.Errorf("%d events of %d changes: it was not slow", got, sent)
	}
	e.publish(newest + 1) // the connection takes on again
	for ev, ok := s.next(); ev.data["seq"] != float64(newest+1); ev, ok = s.next() {
		if !ok {
			t.Fatal(s.lines.Err())
		}
	}
}

// TestSlowReaderIsToldTheEnd: what was being written is written first.
func TestSlowReaderIsToldTheEnd(t *testing.T) {
	e := start(t)
	c := e.request("GET", longPage, "\r\n")
	e.fill()
	e.Drain()
	_, s := e.answer(c, "GET")
	var last event
	for ev, ok := s.next(); ok; ev, ok = s.next() {
		last = ev
	}
	if last.name != "end" || last.data["code"] != "draining" || s.lines.Err() != nil {
		t.Errorf("the last event is %+v (%v)", last, s.lines.Err())
	}
	e.awaitStreams(0)
}

// TestServerEndsBesideSlowReader: one that takes nothing delays the end by the write timeout.
func TestServerEndsBesideSlowReader(t *testing.T) {
	e := start(t, func(c *Config) { c.WriteTimeout = 100 * time.Millisecond })
	e.request("GET", longPage, "\r\n")
	e.awaitStreams(1)
	for seq := uint64(918); seq < 960; seq++ {
		e.publish(seq)
	}
	e.stop()
	select {
	case err := <-e.ended:
		e.ended <- err
	case <-time.After(10 * time.Second):
		t.Fatal("the server has not ended")
	}
	e.awaitStreams(0)
}

// TestBytesBehindTheRequest are dropped: the client has nothing to say.
func TestBytesBehindTheRequest(t *testing.T) {
	e := start(t, func(c *Config) { c.Heartbeat = 50 * time.Millisecond })
	c := e.request("GET", "/v1/boards/local/live?limit=2", "\r\nGET / HTTP/1.1\r\n\r\n"+strings.Repeat("\x00", 3000))
	_, s := e.answer(c, "GET")
	s.want("page")
	for range 5 {
		if _, err := c.Write([]byte("more")); err != nil {
			t.Fatal(err)
		}
		s.want("age")
	}
	e.publish(918)
	for ev, ok := s.next(); ev.name != "page"; ev, ok = s.next() {
		if !ok {
			t.Fatal(s.lines.Err())
		}
	}
}

// TestHeadHasNoEvents: HEAD is answered at once, and leaves nothing open.
func TestHeadHasNoEvents(t *testing.T) {
	e := start(t)
	for path, status := range map[string]int{"/v1/boards/local/live": 200, "/v1/boards/shut/live": 403, "/v1/boards/local/live?limit=0": 400} {
		res, _ := e.answer(e.request("HEAD", path, "\r\n"), "HEAD")
		if res.StatusCode != status || status == 200 && res.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%s: %s %v", path, res.Status, res.Header)
		}
	}
	e.awaitStreams(0)
}

// TestRequestWithBody: net/http still reads from such a connection, and so sends the events.
func TestRequestWithBody(t *testing.T) {
	e := start(t)
	_, s := e.answer(e.request("GET", "/v1/boards/local/live", "Content-Length: 5\r\n\r\nhello"), "GET")
	s.want("page")
	e.Drain()
	s.want("end")
}

// A caller whose own body comes in too slowly is told so, and nothing of this process's sockets.
func TestOwnSlowBody(t *testing.T) {
	e := start(t, func(c *Config) { c.ReadTimeout = 100 * time.Millisecond })
	for kind, head := range map[string]string{"Connect with JSON": "Content-Type: application/json\r\n", "Connect": "Content-Type: application/proto\r\n"} {
		c := e.request(http.MethodPost, "/rankcache.v1.Boards/GetTop", head+"Content-Length: 100\r\n\r\n{\"bo")
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "too slowly") || strings.Contains(string(text), "127.0.0.1") {
			t.Errorf("%s: %s %s, %v", kind, res.Status, text, err)
		}
	}
}
