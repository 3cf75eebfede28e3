package rankcache

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// MaxMemberLen is the longest member id, in bytes.
const MaxMemberLen = 128

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
// characters, which is what every id may be.
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
