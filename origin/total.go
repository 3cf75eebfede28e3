package origin

import (
	"fmt"
	"strings"

	"rankcache"
	"rankcache/wire"
)

// Total says which Redis key holds a board's count of applied orders. The zero
// value is the seq key that rankcache's own writer keeps.
type Total struct {
	pattern string // a key with <board> in it; "" is the seq key
	none    bool
}

// ParseTotal reads "seq" (or ""), "key:<pattern>" with <board> once in the
// pattern, or "none". In a cluster the pattern must hash to the slot of the
// board's own key, as in "key:{<board>}:count".
func ParseTotal(s string) (Total, error) {
	pattern, isKey := strings.CutPrefix(s, "key:")
	switch {
	case s == "" || s == "seq":
		return Total{}, nil
	case s == "none":
		return Total{none: true}, nil
	case isKey && strings.Count(pattern, "<board>") == 1:
		return Total{pattern: pattern}, nil
	}
	return Total{}, fmt.Errorf("total %q: want seq, none, or key: and a pattern with <board> in it once", s)
}

// String returns what ParseTotal reads back.
func (t Total) String() string {
	switch {
	case t.none:
		return "none"
	case t.pattern != "":
		return "key:" + t.pattern
	}
	return "seq"
}

// key returns the key of the board's total, or "" if none is kept.
func (t Total) key(names wire.Names, b rankcache.BoardID) string {
	switch {
	case t.none:
		return ""
	case t.pattern != "":
		return strings.Replace(t.pattern, "<board>", string(b), 1)
	}
	return names.SeqKey(b)
}
