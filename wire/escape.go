package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"rankcache"
)

const (
	hashMark    = "xh" // begins names that are digests of ids: nothing else is escaped so
	maxFileName = 200  // leaves a file room for the endings of a name
)

// plain are the characters of board ids that stand for themselves in names of topics and files; ":" is a dot in topics.
func plain(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.IndexByte("._:-", c) >= 0
}

// IsPlain reports whether all characters of an id are A-Z, a-z, 0-9 and "._:-", of which the ids of classes are.
func IsPlain(b rankcache.BoardID) bool {
	return strings.IndexFunc(string(b), func(r rune) bool { return r > 0x7f || !plain(byte(r)) }) < 0
}

// escape returns the id with other characters as mark, "x" and two digits, marks of the id that would read so, too; a
// digest beyond limit. No two ids have the same name.
func escape(b rankcache.BoardID, mark byte, limit int) string {
	if IsPlain(b) {
		return string(b)
	}
	var name strings.Builder
	for i := range len(b) {
		if c := b[i]; plain(c) && (c != mark || i+1 == len(b) || b[i+1] != 'x') {
			name.WriteByte(c)
		} else {
			fmt.Fprintf(&name, "%cx%02x", mark, c)
		}
	}
	if name.Len() <= limit {
		return name.String()
	}
	sum := sha256.Sum256([]byte(b))
	return string(mark) + hashMark + hex.EncodeToString(sum[:20])
}

// FileName returns the name of a file about a board, without its ending.
func FileName(b rankcache.BoardID) string { return escape(b, '%', maxFileName) }

// UnescapeTopic returns the id, with dots for colons, of a topic's name; false for a digest.
func UnescapeTopic(name string) (id string, ok bool) {
	if strings.HasPrefix(name, "_"+hashMark) {
		return "", false
	}
	var text strings.Builder
	for rest := name; rest != ""; {
		if c, err := hex.DecodeString(rest[min(2, len(rest)):min(4, len(rest))]); strings.HasPrefix(rest, "_x") && err == nil && len(c) == 1 {
			text.WriteByte(c[0])
			rest = rest[4:]
			continue
		}
		text.WriteByte(rest[0])
		rest = rest[1:]
	}
	return text.String(), true
}
