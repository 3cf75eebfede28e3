package resp

import (
	"math"
	"strconv"
)

// format is how the upstream writes a score that is no small integer.
type format uint8

const (
	formatUnknown  format = iota // only integers below 10^17, which all servers write alike
	formatPrintf                 // %.17g: Redis up to 7.0
	formatShortest               // the shortest text that is read back as the number: later servers
)

// The scores of learnedScores tell the formats apart.
const learnScores = "return {{double=0.1},{double=1e17},{double=1048576.9999995232}}"

// learnedFormat returns the format of a server that answers learnScores with these texts.
func learnedFormat(texts []string) format {
	for _, f := range []format{formatPrintf, formatShortest} {
		alike := len(texts) == 3
		for i, score := range []float64{0.1, 1e17, 1048576.9999995232} {
			text, _ := f.append(nil, score)
			alike = alike && texts[i] == string(text)
		}
		if alike {
			return f
		}
	}
	return formatUnknown
}

// append appends the score as the upstream writes it, and reports whether it is known how.
func (f format) append(dst []byte, score float64) ([]byte, bool) {
	if n := int64(score); float64(n) == score && n > -1e17 && n < 1e17 {
		return strconv.AppendInt(dst, n, 10), true
	}
	switch f {
	case formatPrintf:
		return strconv.AppendFloat(dst, score, 'g', 17, 64), true
	case formatShortest:
		return appendShortest(dst, score), true
	}
	return dst, false
}

// appendShortest writes as fpconv_dtoa does, which Redis 7.2 and Valkey use.
func appendShortest(dst []byte, score float64) []byte {
	if math.Abs(score) <= 1<<62 && score == math.Trunc(score) { // double2ll
		return strconv.AppendInt(dst, int64(score), 10)
	}
	var room [32]byte
	digits, exp := grisu(room[:0], math.Abs(score))
	if score < 0 {
		dst = append(dst, '-')
	}
	return emitDigits(dst, digits, exp, score < 0)
}

// emitDigits writes digits * 10^exp with or without an exponent, as fpconv does.
func emitDigits(dst, digits []byte, exp int, negative bool) []byte {
	n := len(digits)
	size := exp + n - 1
	if size < 0 {
		size = -size
	}
	switch {
	case exp >= 0 && size < n+7:
		dst = append(dst, digits...)
		return appendZeros(dst, exp)
	case exp < 0 && (exp > -7 || size < 4):
		if point := n + exp; point > 0 {
			dst = append(append(dst, digits[:point]...), '.')
			return append(dst, digits[point:]...)
		}
		dst = appendZeros(append(dst, "0."...), -exp-n)
		return append(dst, digits...)
	}
	sign := byte('+')
	if exp+n-1 < 0 {
		sign = '-'
	}
	most := 18
	if negative {
		most--
	}
	n = min(n, most)
	if dst = append(dst, digits[0]); n > 1 {
		dst = append(append(dst, '.'), digits[1:n]...)
	}
	return strconv.AppendInt(append(dst, 'e', sign), int64(size), 10)
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}

func (f format) String() string {
	return [...]string{"unknown: only integers are answered here", "%.17g", "shortest"}[f]
}
