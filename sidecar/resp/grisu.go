package resp

import (
	"math"
	"math/big"
	"math/bits"
)

// grisu is Florian Loitsch's Grisu2 as fpconv has it: the digits of a positive number and
// the power of ten that they are multiplied by. Of some numbers the digits are not the
// shortest, so that strconv's differ.
func grisu(dst []byte, v float64) (digits []byte, exp int) {
	w := floatOf(v)
	lower, upper := w.bounds()
	w = w.normalized()
	k, power := cachedPower(upper.exp)
	w, lower, upper = w.times(power), lower.times(power), upper.times(power)
	lower.frac++
	upper.frac--
	return generate(dst, w, upper, lower, -k)
}

// fp is frac * 2^exp.
type fp struct {
	frac uint64
	exp  int
}

const hiddenBit = 1 << 52

func floatOf(v float64) fp {
	b := math.Float64bits(v)
	frac, exp := b&(hiddenBit-1), int(b>>52)&0x7ff
	if exp == 0 {
		return fp{frac, -1074}
	}
	return fp{frac + hiddenBit, exp - 1075}
}

func (f fp) normalized() fp {
	shift := bits.LeadingZeros64(f.frac)
	return fp{f.frac << shift, f.exp - shift}
}

// bounds are the ends of what is read back as f, with the exponent of the upper one.
func (f fp) bounds() (lower, upper fp) {
	upper = fp{f.frac<<1 + 1, f.exp - 1}.normalized()
	shift := 1
	if f.frac == hiddenBit {
		shift = 2
	}
	lower = fp{f.frac<<shift - 1, f.exp - shift}
	return fp{lower.frac << (lower.exp - upper.exp), upper.exp}, upper
}

func (f fp) times(g fp) fp {
	const low = 1<<32 - 1
	a, b, c, d := f.frac>>32, f.frac&low, g.frac>>32, g.frac&low
	mid := (b*d)>>32 + a*d&low + b*c&low + 1<<31
	return fp{a*c + (a*d)>>32 + (b*c)>>32 + mid>>32, f.exp + g.exp + 64}
}

// Powers of ten from 10^-348 on in steps of 8, so that a product has an exponent between
// minExp and maxExp.
const (
	firstPower, powerStep, powerCount = -348, 8, 87
	minExp, maxExp                    = -60, -32
)

var powers = func() (all [powerCount]fp) {
	for i := range all {
		all[i] = powerOfTen(firstPower + i*powerStep)
	}
	return all
}()

// powerOfTen returns 10^n rounded to 64 bits.
func powerOfTen(n int) fp {
	abs := n
	if n < 0 {
		abs = -n
	}
	ten := new(big.Float).SetPrec(2000).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(abs)), nil))
	if n < 0 {
		ten.Quo(new(big.Float).SetPrec(2000).SetInt64(1), ten)
	}
	ten.SetPrec(64)
	var mant big.Float
	exp := ten.MantExp(&mant) - 64
	frac, _ := mant.SetMantExp(&mant, 64).Uint64()
	return fp{frac, exp}
}

func cachedPower(exp int) (k int, power fp) {
	const oneLogTen = 0.30102999566398114
	approx := int(-float64(exp+powerCount) * oneLogTen)
	i := (approx - firstPower) / powerStep
	for {
		switch current := exp + powers[i].exp + 64; {
		case current < minExp:
			i++
		case current > maxExp:
			i--
		default:
			return firstPower + i*powerStep, powers[i]
		}
	}
}

// generate appends the digits between the bounds that are nearest to w.
func generate(dst []byte, w, upper, lower fp, k int) ([]byte, int) {
	wide, delta := upper.frac-w.frac, upper.frac-lower.frac
	one := fp{1 << -upper.exp, upper.exp}
	whole, part := upper.frac>>-one.exp, upper.frac&(one.frac-1)
	kappa := 10
	for div := uint64(1e9); kappa > 0; div /= 10 {
		digit := whole / div
		if digit != 0 || len(dst) > 0 {
			dst = append(dst, byte(digit)+'0')
		}
		whole -= digit * div
		kappa--
		if rest := whole<<-one.exp + part; rest <= delta {
			round(dst, delta, rest, div<<-one.exp, wide)
			return dst, k + kappa
		}
	}
	for unit := uint64(10); ; unit *= 10 {
		part, delta, kappa = part*10, delta*10, kappa-1
		digit := part >> -one.exp
		if digit != 0 || len(dst) > 0 {
			dst = append(dst, byte(digit)+'0')
		}
		if part &= one.frac - 1; part < delta {
			round(dst, delta, part, one.frac, wide*unit)
			return dst, k + kappa
		}
	}
}

// round makes the last digit smaller while that comes nearer to the number.
func round(digits []byte, delta, rest, kappa, frac uint64) {
	for rest < frac && delta-rest >= kappa && (rest+kappa < frac || frac-rest > rest+kappa-frac) {
		digits[len(digits)-1]--
		rest += kappa
	}
}
