package resp

import (
	"strconv"

	"rankcache/wire"
)

// appendScore appends integers below 10^17 as all versions of Redis write them, and other numbers in
// the shortest form that is read back as the same double. Redis up to 7.0 has 17 digits for those
// (%.17g), later versions a shortest form with other exponents.
func appendScore(dst []byte, score float64) []byte {
	if n := int64(score); float64(n) == score && n > -1e17 && n < 1e17 {
		return strconv.AppendInt(dst, n, 10)
	}
	return wire.AppendScore(dst, score)
}
