package resp

import (
	"math"
	"strconv"
	"unsafe"

	"rankcache"
)

// form is a well-formed read of one key. It holds the memory of the command.
type form struct {
	verb  verb
	key   []byte
	board rankcache.BoardID
	order rankcache.Direction
	score bool // with scores
	split bool // the board is kept as shards

	byScore       bool
	start, stop   int64   // by rank
	lo, hi        float64 // by score, both included
	offset, count int64   // rows of those by score; count < 0: all
	members       [][]byte
}

// parseForm returns the read that the command is; false: malformed, unknown to the upstream, or left to it.
func (f *facts) parseForm(v verb, args [][]byte) (q form, ok bool) {
	q = form{verb: v, count: -1}
	if len(args) < 2 {
		return q, false
	}
	q.key = args[1]
	rest := args[2:]
	switch v {
	case zRevRange, zRange:
		ok = q.parseRange(rest, f.rangeOptions)
	case zRevRangeByScore, zRangeByScore:
		ok = q.parseByScore(rest)
	case zRevRank, zRank:
		q.order = direction(v == zRevRank)
		q.score = len(rest) == 2 && is(rest[1], "WITHSCORE")
		ok = len(rest) == 1 || q.score && f.rankScore
		q.members = rest[:min(len(rest), 1)]
	case zScore:
		ok, q.members = len(rest) == 1, rest
	case zMScore:
		ok, q.members = len(rest) >= 1 && len(rest) <= maxMembers && f.multiScore, rest
	case zCard:
		ok = len(rest) == 0
	case zCount:
		ok = len(rest) == 2 && q.parseBounds(rest[0], rest[1])
	}
	return q, ok
}

func direction(reverse bool) rankcache.Direction {
	if reverse {
		return rankcache.Descending
	}
	return rankcache.Ascending
}

func (q *form) parseRange(args [][]byte, options bool) bool {
	if len(args) < 2 {
		return false
	}
	reverse, limit := q.verb == zRevRange, false
	for i := 2; i < len(args); i++ {
		switch a := args[i]; {
		case is(a, "WITHSCORES") && !q.score:
			q.score = true
		case !options || q.verb == zRevRange:
			return false
		case is(a, "REV") && !reverse:
			reverse = true
		case is(a, "BYSCORE") && !q.byScore:
			q.byScore = true
		case is(a, "LIMIT") && !limit && q.parseLimit(args[i+1:]):
			limit = true
			i += 2
		default:
			return false
		}
	}
	q.order = direction(reverse)
	switch {
	case q.byScore && reverse:
		return q.parseBounds(args[1], args[0])
	case q.byScore:
		return q.parseBounds(args[0], args[1])
	}
	var start, stop bool
	q.start, start = parseInt(args[0])
	q.stop, stop = parseInt(args[1])
	return start && stop && !limit
}

func (q *form) parseByScore(args [][]byte) bool {
	if len(args) < 2 {
		return false
	}
	q.byScore, q.order = true, direction(q.verb == zRevRangeByScore)
	limit := false
	for i := 2; i < len(args); i++ {
		switch {
		case is(args[i], "WITHSCORES") && !q.score:
			q.score = true
		case is(args[i], "LIMIT") && !limit && q.parseLimit(args[i+1:]):
			limit = true
			i += 2
		default:
			return false
		}
	}
	if q.order == rankcache.Descending {
		return q.parseBounds(args[1], args[0])
	}
	return q.parseBounds(args[0], args[1])
}

func (q *form) parseLimit(args [][]byte) bool {
	if len(args) < 2 {
		return false
	}
	var offset, count bool
	q.offset, offset = parseInt(args[0])
	q.count, count = parseInt(args[1])
	return offset && count && q.offset >= 0
}

func (q *form) parseBounds(lo, hi []byte) (ok bool) {
	var okLo, okHi bool
	q.lo, okLo = parseBound(lo, math.Inf(1))
	q.hi, okHi = parseBound(hi, math.Inf(-1))
	return okLo && okHi
}

// parseBound returns an end of a range of scores, included: else moved by the smallest step in a direction.
func parseBound(arg []byte, towards float64) (bound float64, ok bool) {
	open := len(arg) > 0 && arg[0] == '('
	if open {
		arg = arg[1:]
	}
	if bound, ok = parseScore(arg); ok && open {
		bound = math.Nextafter(bound, towards)
	}
	return bound, ok
}

// parseScore accepts decimal numbers and infinities; strtod's further forms are the upstream's.
func parseScore(arg []byte) (float64, bool) {
	digits := arg
	if len(digits) > 0 && (digits[0] == '-' || digits[0] == '+') {
		digits = digits[1:]
	}
	if is(digits, "INF") {
		if arg[0] == '-' {
			return math.Inf(-1), true
		}
		return math.Inf(1), true
	}
	if len(digits) == 0 || len(digits) > 40 || digits[0] < '0' || digits[0] > '9' {
		return 0, false
	}
	for _, c := range digits {
		if (c < '0' || c > '9') && c != '.' && c != 'e' && c != 'E' && c != '-' && c != '+' {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(text(arg), 64)
	return f, err == nil
}

// text returns b as a string that shares its memory, for callees that do not keep it.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
