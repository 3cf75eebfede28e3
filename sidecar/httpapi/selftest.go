package httpapi

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"rankcache"
)

// trusted reports whether the request cache may be on: not with an error of [checkLibrary], which is logged.
func trusted(err error, log *slog.Logger) bool {
	if err != nil {
		log.Error("request cache is off: this version of fasthttp does not behave as the cache relies on", "error", err)
	}
	return err == nil
}

// libraryEvents are the events that a recorder relies on, for the connection of libraryRequests.
const libraryEvents = "active read write idle " + // one request; the first is active before it is read
	"read active idle active write idle " + // two in one piece
	"read active read write idle " + // one in two pieces
	"read closed"

// libraryRequests returns the pieces that each read of that connection returns.
func libraryRequests() []string {
	const get, rest = "GET / HTT", "P/1.1\r\nHost: a\r\n\r\n"
	return []string{get + rest, "GET /304 HTT" + rest + get + rest, get, rest}
}

// checkLibrary has srv serve a connection in memory, and returns an error if it does not go through the connection
// states in the order on which the request cache relies, or if its answers differ from those that the cache composes.
func checkLibrary(srv *fasthttp.Server) error {
	b := newBody([]byte("{}"), &rankcache.Answer{Stamp: rankcache.Stamp{State: rankcache.State{Run: 1}}, Source: rankcache.SourceLocal}, nil)
	c := &scriptedConn{reads: libraryRequests()}
	srv.ConnState = func(_ net.Conn, state fasthttp.ConnState) { c.event(state.String()) }
	srv.Handler = func(ctx *fasthttp.RequestCtx) {
		b.fields.CopyTo(&ctx.Response.Header)
		if string(ctx.Path()) == "/304" {
			setNotModified(&ctx.Response.Header)
		} else {
			ctx.Response.SetBodyRaw(b.data)
		}
	}
	if err := srv.ServeConn(c); err != nil {
		return fmt.Errorf("serving a connection in memory: %w", err)
	}
	if got := strings.Join(c.events, " "); got != libraryEvents {
		return fmt.Errorf("events of a connection are %q, want %q", got, libraryEvents)
	}
	return checkAnswers(c.written.Bytes(), b)
}

// checkAnswers compares the bytes that were sent with the same answers, composed.
func checkAnswers(sent []byte, b *body) error {
	for i, h := range []header{b.full, b.notModified, b.full, b.full} {
		data := b.data
		if i == 1 {
			data = nil
		}
		want := append(h.append(nil, nil, time.Time{}), data...)
		if len(sent) < len(want) {
			return fmt.Errorf("answer %d is %q, want %q", i, sent, want)
		}
		got := bytes.Clone(sent[:len(want)])
		if _, err := http.ParseTime(string(got[h.date:min(h.date+len(http.TimeFormat), len(got))])); err != nil {
			return fmt.Errorf("answer %d is %q: want a date at byte %d: %w", i, got, h.date, err)
		}
		copy(want[h.date:], got[h.date:h.date+len(http.TimeFormat)])
		if !bytes.Equal(got, want) {
			return fmt.Errorf("answer %d is %q, want %q", i, got, want)
		}
		sent = sent[len(want):]
	}
	if len(sent) > 0 {
		return fmt.Errorf("the last answer is followed by %q", sent)
	}
	return nil
}

// scriptedConn is a connection in memory that records its calls.
type scriptedConn struct {
	net.Conn // nil: no other method is called
	reads    []string
	written  bytes.Buffer
	events   []string
}

func (c *scriptedConn) event(name string) { c.events = append(c.events, name) }

func (c *scriptedConn) Read(p []byte) (int, error) {
	c.event("read")
	if len(c.reads) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.reads[0])
	if c.reads[0] = c.reads[0][n:]; c.reads[0] == "" {
		c.reads = c.reads[1:]
	}
	return n, nil
}

func (c *scriptedConn) Write(p []byte) (int, error) {
	c.event("write")
	return c.written.Write(p)
}

func (c *scriptedConn) Close() error         { return nil }
func (c *scriptedConn) LocalAddr() net.Addr  { return &net.TCPAddr{} }
func (c *scriptedConn) RemoteAddr() net.Addr { return &net.TCPAddr{} }
