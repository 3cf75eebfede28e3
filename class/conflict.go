package class

import (
	"fmt"
	"strings"
)

// Conflict returns an error if boards of both classes could have one id, or ids that differ only in ":", "." and "_",
// which topics take for equal, or ".p<n>" behind. Names of dimensions and periods make no difference.
func Conflict(a, b *Class) error {
	for _, pair := range [...][2]*Class{{a, b}, {b, a}} {
		whole, piece := pair[0], pair[1]
		if last := len(piece.template) - 1; whole.shards > 0 && last == len(whole.template) && canBeShard(piece, piece.template[last], whole.shards) && overlap(whole, piece, last) {
			return fmt.Errorf("board %q of class %s can have the id of a shard of class %s: %q with .s<n> behind it: change a part that is not in braces",
				piece.board, piece.name, whole.name, whole.board)
		}
		if overlap(whole, piece, len(piece.template)) {
			return fmt.Errorf("boards %q of class %s and %q of class %s can have one id (: . _ count as one sign): change a part that is not in braces",
				a.board, a.name, b.board, b.name)
		}
		if last := len(piece.template) - 1; last == len(whole.template) && piece.template[last].canBePage() && overlap(whole, piece, last) {
			return fmt.Errorf("board %q of class %s can have the id of one of class %s (%q) with .p<n> behind it, which is kept free",
				piece.board, piece.name, whole.name, whole.board)
		}
	}
	return nil
}

// overlap reports whether the template of a and the first n segments of that of b can make one id.
func overlap(a, b *Class, n int) bool {
	if len(a.template) != n {
		return false
	}
	for i, s := range a.template {
		if !canMeet(a, s, b, b.template[i]) {
			return false
		}
	}
	return true
}

// canMeet reports whether a segment of a and one of b can be the same text.
func canMeet(a *Class, s segment, b *Class, other segment) bool {
	switch {
	case s.isTag() && other.isTag():
		return true
	case s.isTag() && other.isDim():
		return a.calendar.unit == season || CheckDimension(a.calendar.Sample()) == nil
	case s.isTag():
		return a.calendar.canMean(other.text)
	case other.placeholder && !s.placeholder, other.isTag():
		return canMeet(b, other, a, s)
	case s.placeholder:
		return other.placeholder || CheckDimension(other.text) == nil
	}
	return s.text == other.text
}

// canBeShard reports whether a segment of c can be s0, s1 and so on, up to n shards.
func canBeShard(c *Class, s segment, n int) bool {
	for shard := range n {
		text := strings.TrimPrefix(string(ShardID("", shard)), ".")
		if s.isDim() || s.isTag() && c.calendar.canMean(text) || s.text == text && !s.placeholder {
			return true
		}
	}
	return false
}

// canBePage reports whether the segment can be p1, p2 and so on.
func (s segment) canBePage() bool {
	digits, found := strings.CutPrefix(s.text, "p")
	return s.isDim() || !s.placeholder && found && digits != "" && strings.Trim(digits, "0123456789") == ""
}
