package origin

import (
	"fmt"
	"strings"

	"rankcache"
	"rankcache/wire"
)

// TotalSource is where Redis keeps a board's seq, its count of applied changes. The
// zero value is the seq key that rankcache's writer keeps.
type TotalSource struct {
	pattern string // a key with <board> in it; "" is the seq key
	none    bool
}

// ParseTotalSource parses "seq" (or ""), "key:<pattern>" with <board> once in the
// pattern, or "none" for boards without a count. In a cluster the pattern must hash to the slot of the
// board's own key, as in "key:{<board>}:count".
func ParseTotalSource(s string) (TotalSource, error) {
	pattern, isKey := strings.CutPrefix(s, "key:")
	switch {
	case s == "" || s == "seq":
		return TotalSource{}, nil
	case s == "none":
		return TotalSource{none: true}, nil
	case isKey && strings.Count(pattern, "<board>") == 1:
		return TotalSource{pattern: pattern}, nil
	}
	return TotalSource{}, fmt.Errorf("total %q: want seq, none, or key: and a pattern with <board> in it once", s)
}

// String returns the form that ParseTotalSource parses.
func (t TotalSource) String() string {
	switch {
	case t.none:
		return "none"
	case t.pattern != "":
		return "key:" + t.pattern
	}
	return "seq"
}

// key returns the key of the board's seq, or "" if there is none.
func (t TotalSource) key(names wire.Names, b rankcache.BoardID) string {
	switch {
	case t.none:
		return ""
	case t.pattern != "":
		return strings.Replace(t.pattern, "<board>", string(b), 1)
	}
	return names.SeqKey(b)
}
