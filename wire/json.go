package wire

import (
	"encoding/json"
	"math"
	"strconv"
)

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD, as encoding/json does.
func AppendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// AppendScore appends a finite f as the shortest JSON number that reads back as
// the same double.
func AppendScore(dst []byte, f float64) []byte {
	if i := int64(f); float64(i) == f && i > -1e15 && i < 1e15 {
		return strconv.AppendInt(dst, i, 10) // also turns -0 into 0
	}
	format := byte('f')
	if abs := math.Abs(f); abs < 1e-6 || abs >= 1e21 {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, 64)
}
