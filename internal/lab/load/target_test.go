package load

import (
	"errors"
	"testing"
)

var wholeReplies = []struct {
	proto Proto
	wire  string
	want  reply
}{
	{HTTP, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", reply{status: 200, length: 2}},
	{HTTP, "HTTP/1.1 200 OK\r\nX: y\r\ncontent-length:2\r\n\r\nhi", reply{status: 200, length: 2}},
	{HTTP, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", reply{status: 404}},
	{HTTP, "HTTP/1.1 304 Not Modified\r\nEtag: \"a\"\r\n\r\n", reply{status: 304}},
	{HTTP, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n3\r\nyou\r\n0\r\n\r\n", reply{status: 200, length: 5}},
	{RESP, "+OK\r\n", reply{length: 5}},
	{RESP, ":12\r\n", reply{length: 5}},
	{RESP, "$2\r\nhi\r\n", reply{length: 8}},
	{RESP, "*2\r\n*1\r\n:1\r\n$0\r\n\r\n", reply{length: 18}},
	{RESP, "*0\r\n", reply{length: 4}},
}

// TestReplyIsTakenOnceItIsWhole cuts every reply everywhere, and puts the next
// one behind it.
func TestReplyIsTakenOnceItIsWhole(t *testing.T) {
	for _, c := range wholeReplies {
		for cut := range len(c.wire) {
			if _, err := c.proto.read([]byte(c.wire[:cut])); !errors.Is(err, errShort) {
				t.Errorf("%q: got %v, want that it goes on", c.wire[:cut], err)
			}
		}
		got, err := c.proto.read([]byte(c.wire + c.wire))
		if err != nil || got.size != len(c.wire) || got.status != c.want.status || got.length != c.want.length {
			t.Errorf("%q: got %+v, %v", c.wire, got, err)
		}
	}
}

func TestWhatIsNoAnswer(t *testing.T) {
	for wire, proto := range map[string]Proto{
		"SSH-2.0-OpenSSH_9.2\r\n\r\n":                                 HTTP,
		"HTTP/1.1 abc\r\n\r\n":                                        HTTP,
		"HTTP/1.1 200 OK\r\n\r\n":                                     HTTP,
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n":               HTTP,
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n":                HTTP,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n":  HTTP,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n": HTTP,
		"-ERR unknown command\r\n":                                    RESP,
		"*1\r\n-ERR\r\n":                                              RESP,
		"$-1\r\n":                                                     RESP,
		"*-1\r\n":                                                     RESP,
		"$x\r\n":                                                      RESP,
		"$99999999999\r\n":                                            RESP,
		"hello\r\n":                                                   RESP,
		"\r\n":                                                        RESP,
	} {
		if r, err := proto.read([]byte(wire)); err == nil || errors.Is(err, errShort) {
			t.Errorf("%q: got %+v, %v", wire, r, err)
		}
	}
}

// FuzzRead holds that nothing panics and that a whole reply is inside its buffer
// and stays what it is when more follows.
func FuzzRead(f *testing.F) {
	for _, c := range wholeReplies {
		f.Add([]byte(c.wire), c.proto == RESP)
	}
	f.Fuzz(func(t *testing.T, data []byte, resp bool) {
		p := HTTP
		if resp {
			p = RESP
		}
		r, err := p.read(data)
		if err != nil {
			return
		}
		if r.size <= 0 || r.size > len(data) || r.length > r.size {
			t.Fatalf("%+v of %d bytes", r, len(data))
		}
		again, err := p.read(append(data[:len(data):len(data)], "more"...))
		if err != nil || again.size != r.size || again.status != r.status || again.length != r.length {
			t.Fatalf("with more behind: %+v, %v; before: %+v", again, err, r)
		}
	})
}
