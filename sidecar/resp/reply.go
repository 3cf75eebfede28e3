package resp

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strconv"

	"rankcache/wire"
)

// errReply reports that the upstream does not speak RESP.
var errReply = errors.New("the upstream's reply is not well-formed: is it a Redis?")

var (
	noScript    = []byte("-NOSCRIPT")
	errNoScript = errors.New("scripts were flushed in Redis while commands of a client were under way")
)

const maxNesting = 16 << 10 // how deep arrays stand in arrays of one reply. Scripts of Redis come to some thousands.

// replies counts the upstream's replies, pushes apart, without keeping them. Zero awaits none.
type replies struct {
	want  int    // replies to come
	skip  int    // bytes of a bulk to come
	line  []byte // the beginning of a line that is not complete
	nests []nest // open aggregates
	seen  int    // bytes
	ends  []int  // of the replies, in what was seen
	calls []int  // which of the replies are of the script of logged.go
}

// nest is an aggregate with elements to come.
type nest struct {
	left  int
	apart bool // a push or an attribute, which answers no command
}

// scan counts what is in p. The error wraps [errReply] if that is no RESP, or a reply that answers no command, and
// [errNoScript] if a call of the script was not run.
func (r *replies) scan(p []byte) error {
	for len(p) > 0 {
		if r.skip > 0 {
			n := min(r.skip, len(p))
			r.seen += n
			if r.skip, p = r.skip-n, p[n:]; r.skip == 0 {
				r.ended(false)
			}
			continue
		}
		n, err := r.scanLine(p)
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// scanLine reads up to the end of a line.
func (r *replies) scanLine(p []byte) (n int, err error) {
	const enough = 32 // for a sign and a number
	for n < len(p) && p[n] != '\n' {
		n++
	}
	r.line = append(r.line, p[:min(n, enough-len(r.line))]...)
	r.seen += n
	if n == len(p) {
		return n, nil
	}
	r.seen++
	line := r.line
	r.line = r.line[:0]
	return n + 1, r.begun(line)
}

// begun takes note of an element that begins with the line.
func (r *replies) begun(line []byte) error {
	if len(line) < 2 || len(r.nests) == 0 && r.want == 0 && line[0] != '>' {
		return errReply
	}
	if len(r.nests) == 0 && bytes.HasPrefix(line, noScript) && slices.Contains(r.calls, len(r.ends)) {
		r.want-- // the reply is complete
		return errNoScript
	}
	if text := "+-:_#,("; indexByte(text, line[0]) >= 0 {
		r.ended(false)
		return nil
	}
	n, ok := parseInt(line[1 : len(line)-1])
	if !ok || n < -1 || n > math.MaxInt32 {
		return errReply
	}
	switch line[0] {
	case '$', '=', '!':
		if n >= 0 {
			r.skip = int(n) + 2
			return nil
		}
		r.ended(false)
	case '*', '~', '>':
		return r.nest(n, line[0] == '>')
	case '%':
		return r.nest(2*n, false)
	case '|':
		return r.nest(2*n, true)
	default:
		return errReply
	}
	return nil
}

func (r *replies) nest(n int64, apart bool) error {
	if n <= 0 {
		r.ended(apart)
		return nil
	}
	if len(r.nests) >= maxNesting {
		return errReply
	}
	r.nests = append(r.nests, nest{int(n), apart})
	return nil
}

// ended takes note of the end of an element, and of the aggregates that end with it.
func (r *replies) ended(apart bool) {
	for !apart && len(r.nests) > 0 {
		last := &r.nests[len(r.nests)-1]
		if last.left--; last.left > 0 {
			return
		}
		apart = last.apart
		r.nests = r.nests[:len(r.nests)-1]
	}
	if !apart {
		r.want--
		r.ends = append(r.ends, r.seen)
	}
}

func indexByte(s string, c byte) int {
	for i := range len(s) {
		if s[i] == c {
			return i
		}
	}
	return -1
}

func appendArray(dst []byte, n int) []byte { return appendHeader(dst, '*', int64(n)) }

func appendInt(dst []byte, n int) []byte { return appendHeader(dst, ':', int64(n)) }

func appendHeader(dst []byte, sign byte, n int64) []byte {
	return append(strconv.AppendInt(append(dst, sign), n, 10), "\r\n"...)
}

func appendBulk[T string | []byte](dst []byte, s T) []byte {
	dst = appendHeader(dst, '$', int64(len(s)))
	return append(append(dst, s...), "\r\n"...)
}

func appendCommand(dst []byte, args ...string) []byte {
	dst = appendArray(dst, len(args))
	for _, a := range args {
		dst = appendBulk(dst, a)
	}
	return dst
}

// appendScore appends integers below 10^17 as all versions of Redis do, others in the shortest form that reads back the
// same; Redis up to 7.0 has 17 digits (%.17g), later ones other exponents.
func appendScore(dst []byte, score float64) []byte {
	if n := int64(score); float64(n) == score && n > -1e17 && n < 1e17 {
		return strconv.AppendInt(dst, n, 10)
	}
	return wire.AppendScore(dst, score)
}
