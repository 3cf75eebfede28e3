package httpapi

import (
	"bytes"
	"strconv"

	"rankcache/sidecar/encode"
)

// frame follows the bytes of a connection from request to request, to find out where each head and each body ends.
// fasthttp does that too and has the last word; but it reads on behind a request before it sends the answer, and it
// takes lines for well-formed that another server may read differently. frame hands it one head or body at a time and
// refuses such lines.
//
// The zero frame waits for a request. One goroutine uses it.
type frame struct {
	state  frameState
	line   []byte // beginning of a line that has not ended
	left   int    // bytes of the body or chunk to come
	fields framing
}

// framing is what a head declares about its body.
type framing struct {
	http11  bool
	lengths int // Content-Length fields
	length  int
	coded   bool // there is a Transfer-Encoding
	chunked bool // as its last coding
	broken  bool // chunked is not the last, or there twice
	unknown bool // a coding other than chunked
}

type frameState uint8

const (
	inRequestLine frameState = iota
	inFields
	inBody
	inChunkSize
	inChunk
	behindChunk
	inTrailers
)

// refusal is a request that is not handed to fasthttp. It is an error of a read, so that fasthttp ends the connection.
type refusal struct{ *encode.Problem }

func (r *refusal) Error() string { return string(r.Code) + ": " + r.Detail }

func malformed() error { return &refusal{unreadable()} }

func notImplemented(detail string) error {
	return &refusal{&encode.Problem{Code: encode.CodeNotImplemented, Detail: detail}}
}

// next returns how many bytes of p are of the present head or body; with an error those before the refused line.
func (f *frame) next(p []byte) (n int, err error) {
	for n < len(p) {
		var size int
		var ends bool
		if f.state == inBody || f.state == inChunk {
			size, ends = f.data(len(p) - n)
		} else if size, ends, err = f.lineOf(p[n:]); err != nil {
			// Without its last byte fasthttp can't take the head for complete.
			return n + size - 1, err
		}
		if n += size; ends {
			break
		}
	}
	return n, nil
}

// data passes at most so many bytes of a body or chunk.
func (f *frame) data(most int) (n int, ends bool) {
	n = min(f.left, most)
	if f.left -= n; f.left > 0 {
		return n, false
	}
	if f.state == inChunk {
		f.state = behindChunk
		return n, false
	}
	f.state = inRequestLine
	return n, true
}

// lineOf passes one line. ends is whether a head or body ends with it.
func (f *frame) lineOf(p []byte) (n int, ends bool, err error) {
	end := bytes.IndexByte(p, '\n')
	if end < 0 {
		f.line = append(f.line, p...)
		if len(f.line) > maxHeader {
			return len(p), false, malformed()
		}
		return len(p), false, nil
	}
	line := p[:end+1]
	if len(f.line) > 0 {
		line, f.line = append(f.line, line...), nil
	}
	line, ok := bytes.CutSuffix(line, []byte(lineEnd))
	if !ok {
		return end + 1, false, malformed()
	}
	ends, err = f.take(line)
	return end + 1, ends, err
}

// take goes on behind a line.
func (f *frame) take(line []byte) (ends bool, err error) {
	switch f.state {
	case inRequestLine:
		return false, f.takeRequestLine(line)
	case inFields:
		if len(line) == 0 {
			return true, f.endHead()
		}
		return false, f.fields.take(line)
	case inChunkSize:
		return false, f.takeChunkSize(line)
	case behindChunk:
		if f.state = inChunkSize; len(line) > 0 {
			return false, malformed()
		}
		return false, nil
	}
	if len(line) == 0 { // of the trailers
		f.state = inRequestLine
		return true, nil
	}
	if _, _, ok := cutField(line); !ok {
		return false, malformed()
	}
	return false, nil
}

func (f *frame) takeRequestLine(line []byte) error {
	if len(line) == 0 { // clients of old sent one behind a body
		return nil
	}
	if bytes.HasPrefix(line, []byte("CONNECT ")) {
		return notImplemented("this is no proxy")
	}
	f.state, f.fields = inFields, framing{http11: bytes.HasSuffix(line, []byte(" HTTP/1.1"))}
	return nil
}

// endHead goes on behind a head.
func (f *frame) endHead() error {
	switch h := &f.fields; {
	case h.coded && (h.lengths > 0 || !h.http11 || !h.chunked || h.broken):
		return malformed()
	case h.unknown:
		return notImplemented("want no Transfer-Encoding but chunked")
	case h.chunked:
		f.state = inChunkSize
	case h.length > 0:
		f.state, f.left = inBody, h.length
	default:
		f.state = inRequestLine
	}
	return nil
}

func (f *frame) takeChunkSize(line []byte) error {
	digits, extension, _ := bytes.Cut(line, []byte(";"))
	size, err := strconv.ParseUint(view(digits), 16, 32)
	if err != nil || len(digits) > 8 || bytes.ContainsFunc(extension, isControl) {
		return malformed()
	}
	if f.left, f.state = int(size), inChunk; size == 0 {
		f.state = inTrailers
	}
	return nil
}

// take reads a field of the head.
func (h *framing) take(line []byte) error {
	name, value, ok := cutField(line)
	if !ok {
		return malformed()
	}
	switch {
	case bytes.EqualFold(name, []byte("Content-Length")):
		length, err := strconv.ParseUint(view(value), 10, 63)
		if h.lengths++; err != nil || h.lengths > 1 {
			return malformed()
		}
		h.length = int(length)
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		h.takeCodings(value)
	}
	return nil
}

func (h *framing) takeCodings(list []byte) {
	h.coded = true
	for coding := range bytes.SplitSeq(list, []byte(",")) {
		h.broken = h.broken || h.chunked
		if bytes.EqualFold(bytes.TrimSpace(coding), []byte("chunked")) {
			h.chunked = true
		} else {
			h.unknown = true
		}
	}
}

// cutField returns name and value of a field, and whether the name is one.
func cutField(line []byte) (name, value []byte, ok bool) {
	name, value, ok = bytes.Cut(line, []byte(":"))
	if !ok || len(name) == 0 {
		return nil, nil, false
	}
	for _, b := range name {
		if b <= ' ' || b >= 0x7f || bytes.IndexByte([]byte(`"(),/:;<=>?@[\]{}`), b) >= 0 {
			return nil, nil, false
		}
	}
	return name, bytes.TrimSpace(value), true
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
