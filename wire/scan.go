package wire

import (
	"strconv"
	"unsafe"
)

// scan reads a flat object of plain strings and numbers, which is the only
// shape that our producers write, about ten times faster than encoding/json and
// without an allocation. It answers false for anything else (escapes, nested
// values, white space in odd places, bad JSON); the caller then asks
// encoding/json, which has the last word.
func (w *wireUpdate) scan(data []byte) bool {
	if len(data) < 2 || data[0] != '{' {
		return false
	}
	s := unsafe.String(&data[0], len(data)) // data is not changed afterwards: see DecodeUpdate
	for i := 1; ; {
		key, value, next := scanField(s, i)
		if next == 0 || !w.put(key, value) {
			return false
		}
		if i = next + 1; s[next] == '}' {
			return i == len(s)
		}
	}
}

// scanField reads `"key":value` at s[i] and returns both, a string value with
// its opening quote, and the index of the "," or "}" behind; 0 if it can't.
func scanField(s string, i int) (key, value string, next int) {
	key, i = scanString(s, i)
	if i == 0 || i+1 >= len(s) || s[i] != ':' {
		return "", "", 0
	}
	if start := i + 1; s[start] == '"' {
		_, i = scanString(s, start)
		if i == 0 {
			return "", "", 0
		}
		value = s[start : i-1]
	} else {
		i = scanNumber(s, start)
		value = s[start:i]
	}
	if i >= len(s) || value == "" || s[i] != ',' && s[i] != '}' {
		return "", "", 0
	}
	return key, value, i
}

// scanString reads a string without escapes at s[i] and returns its text and
// the index behind its closing quote, or 0.
func scanString(s string, i int) (string, int) {
	if i >= len(s) || s[i] != '"' {
		return "", 0
	}
	for j := i + 1; j < len(s); j++ {
		switch c := s[j]; {
		case c == '"':
			return s[i+1 : j], j + 1
		case c < ' ' || c == '\\':
			return "", 0
		}
	}
	return "", 0
}

// scanNumber returns the index behind the number at s[i].
func scanNumber(s string, i int) int {
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '-' || s[i] == '+' || s[i] == '.' || s[i] == 'e' || s[i] == 'E') {
		i++
	}
	return i
}

// put stores one field; false sends the whole record to encoding/json.
func (w *wireUpdate) put(key, value string) (ok bool) {
	switch key {
	case "v":
		w.version, ok = scanUint(value)
	case "board":
		w.board, ok = text(value)
	case "member":
		w.member, ok = text(value)
	case "op":
		w.op, ok = text(value)
	case "delta":
		w.delta, ok = scanFloat(value)
		w.hasDelta = true
	case "score":
		w.score, ok = scanFloat(value)
		w.hasScore = true
	case "seq":
		w.seq, ok = scanUint(value)
	case "order":
		w.order, ok = text(value)
	case "at":
		var at uint64
		at, ok = scanUint(value)
		w.at = int64(at)
	case "rank_id":
		w.rank, ok = id(value)
	case "inviter_uid":
		w.inviter, ok = id(value)
	case "invitee_uid":
		w.invitee, ok = id(value)
	default: // fields of later versions
		return false
	}
	return ok
}

func text(value string) (string, bool) {
	if value[0] != '"' {
		return "", false
	}
	return value[1:], true
}

// id reads an id that is written as a string or as a whole number.
func id(value string) (string, bool) {
	if s, ok := text(value); ok {
		return s, s != ""
	}
	_, ok := scanUint(value)
	return value, ok
}

// scanUint reads up to 18 digits without a leading zero.
func scanUint(s string) (n uint64, ok bool) {
	if len(s) > 18 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	for i := range len(s) {
		d := s[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + uint64(d)
	}
	return n, true
}

// scanFloat reads a number by JSON's grammar, short integers without strconv.
func scanFloat(s string) (float64, bool) {
	if len(s) <= 15 {
		if n, ok := scanUint(s); ok {
			return float64(n), true
		}
	}
	if !jsonNumber(s) {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

// jsonNumber refuses what strconv would take and JSON does not: "+1", "01",
// ".5", "1.".
func jsonNumber(s string) bool {
	if s[0] == '-' {
		s = s[1:]
	}
	whole := digits(s)
	if whole == 0 || s[0] == '0' && whole > 1 {
		return false
	}
	if s = s[whole:]; s != "" && s[0] == '.' {
		n := digits(s[1:])
		if n == 0 {
			return false
		}
		s = s[1+n:]
	}
	return s == "" || s[0] == 'e' || s[0] == 'E' // strconv checks the exponent
}

func digits(s string) (n int) {
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
