package rankcache

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Sentinel errors. They come wrapped with what to check.
var (
	ErrBoard  = errors.New("bad board id")  // reports a board id outside its alphabet or length
	ErrMember = errors.New("bad member id") // reports a member id that is empty, too long or not plain text
	ErrScore  = errors.New("bad score")     // reports a score or delta that is not a finite number
	// ErrUnreadable reports an infinite score, or a key of another type, under a key of the board.
	ErrUnreadable  = errors.New("board can't be read")
	ErrUnavailable = errors.New("origin unavailable") // reports that Redis is unreachable or did not answer in time
	ErrNoBoard     = errors.New("no such board")      // reports a board that a ledger has never met
	// ErrFinalCut reports what the final of a board does not have: of some it keeps the first places alone.
	ErrFinalCut = errors.New("not kept in the final")
)

// ErrRegion reports that this read-only region does not have what a query asks for. It wraps [ErrUnavailable].
var ErrRegion = fmt.Errorf("%w: this region only reads: ask the writing region", ErrUnavailable)

// Limits of ids, in bytes. With its prefix the topic of the longest board id is still within Kafka's 249 characters.
const (
	MaxBoardLen  = 200
	MaxMemberLen = 128
)

// BoardID names one leaderboard; it is the id in its Redis key, such as "1_2_3" (app, rank, sub-rank).
type BoardID string

const OwnPrefix = "rankcache:" // begins the keys of rankcache itself, and no board's id

// ParseBoardID returns s as a BoardID, or an error that wraps [ErrBoard].
func ParseBoardID(s string) (BoardID, error) {
	b := BoardID(s)
	return b, b.Check()
}

// Check returns an error that wraps [ErrBoard] unless the id is 1 to [MaxBoardLen] of ASCII without space, controls,
// quotes, backslash and * ? [ ] < > %, without [OwnPrefix], and with braces only as a hash tag.
func (b BoardID) Check() error {
	if len(b) == 0 || len(b) > MaxBoardLen {
		return fmt.Errorf("%w: %d characters, want 1 to %d", ErrBoard, len(b), MaxBoardLen)
	}
	if strings.HasPrefix(string(b), OwnPrefix) {
		return fmt.Errorf("%w %q: keys that begin with %s are rankcache's own", ErrBoard, string(b), OwnPrefix)
	}
	for i := range len(b) {
		if !boardChar[b[i]] {
			return fmt.Errorf("%w %q: character %q at %d, want ASCII without space, quotes, \\ * ? [ ] < > %%", ErrBoard, string(b), b[i], i)
		}
	}
	if b == "(others)" {
		return fmt.Errorf("%w %q: metrics call several boards so", ErrBoard, string(b))
	}
	if i := max(strings.IndexByte(string(b), '{'), strings.IndexByte(string(b), '}')); i >= 0 && !b.HasTag() {
		return fmt.Errorf("%w %q: braces at %d that make no hash tag, want none or {text}", ErrBoard, string(b), i)
	}
	return nil
}

// HasTag reports whether the id has a hash tag, between its first "{" and the "}" after that.
func (b BoardID) HasTag() bool {
	before, rest, opened := strings.Cut(string(b), "{")
	tag, _, closed := strings.Cut(rest, "}")
	return opened && closed && tag != "" && !strings.Contains(before, "}")
}

var boardChar = func() (set [256]bool) {
	for c := byte('!'); c <= '~'; c++ {
		set[c] = strings.IndexByte("\"'`\\*?[]<>%", c) < 0
	}
	return set
}()

// CheckMember returns an error that wraps [ErrMember] unless m is 1 to
// [MaxMemberLen] bytes of UTF-8 text without control characters.
func CheckMember(m string) error {
	if !PlainText(m, MaxMemberLen) {
		return fmt.Errorf("%w %.40q: want 1 to %d bytes of UTF-8 without control characters", ErrMember, m, MaxMemberLen)
	}
	return nil
}

// CheckScore returns an error that wraps [ErrScore] unless f is finite.
func CheckScore(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("%w %v: want a finite number", ErrScore, f)
	}
	return nil
}

// PlainText reports whether s is 1 to limit bytes of UTF-8 without control
// characters, the rule of member ids, order ids and room uids.
func PlainText(s string, limit int) bool {
	if len(s) == 0 || len(s) > limit {
		return false
	}
	ascii := true
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c == 0x7f {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.ValidString(s)
}
