package resp

import (
	"bytes"
	"slices"
)

// Limits of one command, which is held whole here. Redis takes 512 MB an argument.
const (
	maxLine    = 64 << 10 // bytes of an inline command, or of a length
	maxArgs    = 1 << 20
	maxBulk    = 64 << 20  // bytes of one argument
	maxCommand = 128 << 20 // bytes of a command
	maxHeld    = 256 << 20 // bytes of large commands of all connections
	keepArgs   = 1024      // for so many, room is kept for the next command
)

// argsRoom returns how many bytes the places of so many arguments take, 0 if they are few.
func argsRoom(n int) int64 {
	if n <= 2*keepArgs {
		return 0
	}
	return int64(n) * 40 // a span and a slice
}

type protocolError string // a malformed frame. Its text is the one of Redis, which closes the connection behind it.

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// command is one command as it came. Its slices are valid until the next one is parsed.
type command struct {
	raw  []byte
	args [][]byte // none: there is nothing to answer
}

// parser finds the commands in what a client sends, and goes on when more has come. Zero is ready.
type parser struct {
	pos    int // bytes of the command that are parsed
	left   int // arguments to come
	array  bool
	bulk   int // length + 1 of the argument that is awaited, 0: its length is
	spans  []span
	args   [][]byte
	inline []byte // room for the arguments of inline commands
}

type span struct{ from, to int } // where an argument stands in a command

// next returns p's first command and its length; 0 while incomplete. Then p must only grow until the next call.
func (a *parser) next(p []byte) (command, int, error) {
	if a.pos == 0 && len(p) > 0 && p[0] != '*' {
		return a.nextInline(p)
	}
	complete, err := a.parseArray(p)
	if err != nil || !complete {
		return command{}, 0, err
	}
	a.args = slices.Grow(a.args[:0], len(a.spans))
	for _, s := range a.spans {
		a.args = append(a.args, p[s.from:s.to])
	}
	cmd := command{raw: p[:a.pos], args: a.args}
	*a = parser{spans: a.spans[:0], args: a.args, inline: a.inline}
	if cap(a.spans) > keepArgs {
		*a = parser{}
	}
	return cmd, len(cmd.raw), nil
}

func (a *parser) parseArray(p []byte) (complete bool, err error) {
	if !a.array {
		n, ok, err := a.length(p, "too big mbulk count string")
		switch {
		case err != nil || !ok:
			return false, err
		case n == badLength || n > maxArgs:
			return false, protocolError("invalid multibulk length")
		}
		a.array, a.left = true, max(n, 0)
	}
	for a.left > 0 {
		if ok, err := a.parseBulk(p); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

func (a *parser) parseBulk(p []byte) (ok bool, err error) {
	if a.bulk == 0 {
		at := a.pos
		n, ok, err := a.length(p, "too big bulk count string")
		switch {
		case err != nil || !ok:
			return false, err
		case p[at] != '$':
			return false, protocolError("expected '$', got '" + string([]byte{printable(p[at])}) + "'")
		case n < 0 || n > maxBulk || a.pos+n > maxCommand:
			return false, protocolError("invalid bulk length")
		}
		a.bulk = n + 1
	}
	n := a.bulk - 1
	if len(p)-a.pos < n+2 { // what stands in the place of the line's end is not looked at, as in Redis
		return false, nil
	}
	a.spans = append(a.spans, span{a.pos, a.pos + n})
	a.pos, a.bulk, a.left = a.pos+n+2, 0, a.left-1
	return true, nil
}

const badLength = -1 << 31

// length reads a line that is a sign and a number.
func (a *parser) length(p []byte, tooLong protocolError) (n int, ok bool, err error) {
	line := p[a.pos:]
	end := lineEnd(line, '\r')
	switch {
	case end < 0 && len(line) >= maxLine:
		return 0, false, tooLong
	case end < 0 || end+1 == len(line):
		return 0, false, nil
	}
	a.pos += end + 2
	v, ok := parseInt(line[1:max(end, 1)])
	if !ok || v > maxBulk {
		return badLength, true, nil
	}
	return int(max(v, -1)), true, nil
}

// lineEnd returns where c is first, as Redis looks for it: not behind a zero, which ends a C string.
func lineEnd(p []byte, c byte) int {
	for i, b := range p[:min(len(p), maxLine)] { // most lines are short
		switch b {
		case c:
			return i
		case 0:
			return -1
		}
	}
	return -1
}

func printable(c byte) byte {
	if c == '\r' || c == '\n' {
		return ' '
	}
	return c
}

// parseInt accepts what Redis's string2ll does, up to 18 digits.
func parseInt(s []byte) (n int64, ok bool) {
	digits := s
	if len(s) > 1 && s[0] == '-' {
		digits = s[1:]
	}
	if len(digits) == 0 || len(digits) > 18 || digits[0] == '0' && len(s) > 1 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	if len(digits) < len(s) {
		n = -n
	}
	return n, true
}

// nextInline reads a command of words on one line.
func (a *parser) nextInline(p []byte) (command, int, error) {
	end := lineEnd(p, '\n')
	switch {
	case end < 0 && len(p) >= maxLine:
		return command{}, 0, protocolError("too big inline request")
	case end < 0:
		return command{}, 0, nil
	}
	if !a.split(bytes.TrimSuffix(p[:end], []byte("\r"))) {
		return command{}, 0, protocolError("unbalanced quotes in request")
	}
	return command{raw: p[:end+1], args: a.args}, end + 1, nil
}

// split sets args to the words of the line, which may be quoted as in redis-cli.
func (a *parser) split(line []byte) (balanced bool) {
	a.args, a.inline = a.args[:0], slices.Grow(a.inline[:0], len(line)) // so that arguments stay where they are
	for {
		line = bytes.TrimLeft(line, " \t\n\v\f\r")
		if len(line) == 0 {
			return true
		}
		from := len(a.inline)
		if line, balanced = a.word(line); !balanced {
			return false
		}
		a.args = append(a.args, a.inline[from:len(a.inline):len(a.inline)])
	}
}

// word appends the first word of the line and returns what stands behind it.
func (a *parser) word(line []byte) (rest []byte, balanced bool) {
	for len(line) > 0 && !isSpace(line[0]) {
		switch line[0] {
		case '"', '\'':
			n := a.quoted(line)
			if n == 0 || n < len(line) && !isSpace(line[n]) {
				return nil, false
			}
			return line[n:], true
		}
		a.inline = append(a.inline, line[0])
		line = line[1:]
	}
	return line, true
}

// quoted appends the text in quotes that the line begins with and returns its length, 0 if it does not end.
func (a *parser) quoted(line []byte) int {
	quote := line[0]
	for i := 1; i < len(line); i++ {
		c := line[i]
		switch {
		case c == quote:
			return i + 1
		case c == '\\' && quote == '\'' && i+1 < len(line) && line[i+1] == '\'':
			i++
			c = '\''
		case c == '\\' && quote == '"' && i+3 < len(line) && line[i+1] == 'x' && isHex(line[i+2]) && isHex(line[i+3]):
			c = unhex(line[i+2])<<4 | unhex(line[i+3])
			i += 3
		case c == '\\' && quote == '"' && i+1 < len(line):
			i++
			c = unescape(line[i])
		}
		a.inline = append(a.inline, c)
	}
	return 0
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isHex(c byte) bool { return bytes.IndexByte([]byte("0123456789abcdefABCDEF"), c) >= 0 }

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}

func unescape(c byte) byte {
	if i := bytes.IndexByte([]byte("nrtba"), c); i >= 0 {
		return "\n\r\t\b\a"[i]
	}
	return c
}
