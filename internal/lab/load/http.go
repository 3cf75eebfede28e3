package load

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// errShort reports that a reply is not whole yet.
var errShort = errors.New("the reply goes on")

// reply is one whole reply at the beginning of a buffer.
type reply struct {
	size   int // bytes of it all
	status int // 0 in RESP
	body   []byte
	length int // of the body; chunks are counted, not joined
}

var (
	endOfHeader   = []byte("\r\n\r\n")
	endOfLine     = []byte("\r\n")
	contentLength = []byte("\r\ncontent-length:")
	chunkedCoding = []byte("\r\ntransfer-encoding: chunked")
)

// readHTTP returns the reply that buf begins with, errShort if there is less.
func readHTTP(buf []byte) (reply, error) {
	end := bytes.Index(buf, endOfHeader)
	if end < 0 {
		return reply{}, errShort
	}
	header := buf[:end]
	if len(header) < 12 || string(header[:7]) != "HTTP/1." {
		return reply{}, fmt.Errorf("not an HTTP/1 reply: %.40q", header)
	}
	status, err := strconv.Atoi(string(header[9:12]))
	if err != nil {
		return reply{}, fmt.Errorf("no status in %.40q", header)
	}
	r := reply{size: end + len(endOfHeader), status: status}
	if status == 304 || status == 204 {
		return r, nil
	}
	if at := indexFold(header, contentLength); at >= 0 {
		return r.whole(buf, header[at+len(contentLength):])
	}
	if indexFold(header, chunkedCoding) >= 0 {
		return r.chunks(buf)
	}
	return reply{}, errors.New("a reply without Content-Length or chunks")
}

// whole reads a body with a declared length.
func (r reply) whole(buf, rest []byte) (reply, error) {
	line, _, _ := bytes.Cut(rest, endOfLine)
	n, err := strconv.Atoi(string(bytes.TrimSpace(line)))
	if err != nil || n < 0 {
		return r, fmt.Errorf("Content-Length is %.20q", line)
	}
	if len(buf) < r.size+n {
		return r, errShort
	}
	r.body, r.length = buf[r.size:r.size+n], n
	r.size += n
	return r, nil
}

// chunks reads a body in chunks. Only the first chunk becomes the body.
func (r reply) chunks(buf []byte) (reply, error) {
	for {
		line, _, ok := bytes.Cut(buf[r.size:], endOfLine)
		if !ok {
			return r, errShort
		}
		n, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil {
			return r, fmt.Errorf("a chunk of length %.20q", line)
		}
		from := r.size + len(line) + len(endOfLine)
		r.size = from + int(n) + len(endOfLine)
		if len(buf) < r.size {
			return r, errShort
		}
		if n == 0 {
			return r, nil
		}
		if r.body == nil {
			r.body = buf[from : from+int(n)]
		}
		r.length += int(n)
	}
}

// indexFold is bytes.Index without regard to case; want is in lower case.
func indexFold(header, want []byte) int {
	for at := 0; ; {
		i := bytes.Index(header[at:], endOfLine)
		if i < 0 || at+i+len(want) > len(header) {
			return -1
		}
		at += i
		if equalFold(header[at:at+len(want)], want) {
			return at
		}
		at += len(endOfLine)
	}
}

func equalFold(b, want []byte) bool {
	for i := range want {
		c := b[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != want[i] {
			return false
		}
	}
	return true
}
