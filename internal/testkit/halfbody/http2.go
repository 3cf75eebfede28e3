package halfbody

import (
	"bytes"
	"net/http"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// HTTP2 fails the test unless the server at the address resets the stream behind its answer to the
// request, and answers another one on the same connection.
func HTTP2(t testing.TB, addr string, r Request) {
	t.Helper()
	conn := dial(t, "tcp", addr)
	defer conn.Close()
	_, err := conn.Write([]byte(http2.ClientPreface))
	check(t, err)
	c := client{t, http2.NewFramer(conn, conn)}
	const window = 1 << 20 // for all that is sent
	check(t, c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}))
	check(t, c.WriteWindowUpdate(0, window))
	c.request(1, false, r.Method, r.Path, append(r.fields(), [2]string{"content-length", "54"})...)
	check(t, c.WriteData(1, false, []byte("x")))
	c.await(1, http2.FrameHeaders)
	c.await(1, http2.FrameRSTStream)
	check(t, c.WriteData(1, true, []byte(rest)))
	c.request(3, true, http.MethodGet, "/next")
	c.await(3, http2.FrameHeaders)
}

// client sends frames and reads them.
type client struct {
	t testing.TB
	*http2.Framer
}

// request sends the head of a request; if that ends it, it has no body.
func (c client) request(stream uint32, ends bool, method, path string, more ...[2]string) {
	c.t.Helper()
	var head bytes.Buffer
	encoder := hpack.NewEncoder(&head)
	for _, field := range append([][2]string{{":method", method}, {":scheme", "http"}, {":authority", "localhost"}, {":path", path}}, more...) {
		check(c.t, encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
	}
	check(c.t, c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: head.Bytes(), EndStream: ends, EndHeaders: true}))
}

// await reads frames until one of a stream comes.
func (c client) await(stream uint32, kind http2.FrameType) {
	c.t.Helper()
	for {
		frame, err := c.ReadFrame()
		if err != nil {
			c.t.Fatalf("no %v of stream %d: %v", kind, stream, err)
		}
		if head := frame.Header(); head.StreamID == stream && head.Type == kind {
			return
		}
	}
}
