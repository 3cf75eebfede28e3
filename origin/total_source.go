package origin

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"rankcache"
	"rankcache/wire"
)

// TotalSource is where Redis keeps a board's state. Zero: the meta, with run, seq and sum; others have a seq at most.
type TotalSource struct {
	pattern string // a key with <board> in it; "" is the meta key
	none    bool
}

// ParseTotalSource parses "seq" (or "") for the meta, "key:<pattern>" with <board> once for a count of changes, or
// "none". In a cluster the pattern must hash to the board's slot, as "key:{<board>}:count".
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

// key returns the key of the board's state, or "" if there is none.
func (t TotalSource) key(names wire.Names, b rankcache.BoardID) string {
	switch {
	case t.none:
		return ""
	case t.pattern != "":
		return strings.Replace(t.pattern, "<board>", string(b), 1)
	}
	return names.MetaKey(b)
}

// stampOf parses the value of key, read with the number of members. A missing key's state is unknown (zero).
func (t TotalSource) stampOf(key string, v any, members int, at time.Time) (rankcache.Stamp, error) {
	stamp := rankcache.Stamp{Members: members, At: at}
	switch v := v.(type) {
	case nil:
		return stamp, nil
	case string:
		if t.pattern == "" {
			err := addMeta(&stamp, key, v)
			return stamp, err
		}
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			return stamp, &badReply{key, fmt.Sprintf("holds %.40q, which is not a count", v)}
		}
		stamp.Seq = n
		return stamp, nil
	}
	return stamp, &badReply{key, fmt.Sprintf("answered %T", v)}
}

// stamp converts members and state as every script returns them; keys are those of [link.keys].
func (t TotalSource) stamp(keys []string, members, state any, at time.Time) (rankcache.Stamp, error) {
	n, ok := members.(int64)
	if !ok {
		return rankcache.Stamp{}, &badReply{keys[0], fmt.Sprintf("answered %T for its size", members)}
	}
	return t.stampOf(keys[len(keys)-1], state, int(n), at)
}

// addMeta adds what a meta tells: no sum while the board is adopted, or was changed past the writer.
func addMeta(stamp *rankcache.Stamp, key, value string) error {
	meta, err := wire.ParseMeta(value)
	if err != nil {
		return fmt.Errorf("key %q: %w", key, err)
	}
	stamp.Foreign = meta.Members != uint64(stamp.Members) && !meta.Adopting
	if meta.Adopting || stamp.Foreign {
		meta.Sum, meta.HasSum = 0, false
	}
	stamp.State, stamp.Life, stamp.Primed, stamp.Adopting = meta.State, meta.Life, meta.Primed, meta.Adopting
	return nil
}
