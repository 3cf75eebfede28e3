package localboard

import (
	"math"
	"math/rand/v2"
)

// anyScore returns doubles of all kinds: few and many digits, negative, huge,
// tiny, both zeros, infinite.
func anyScore(r *rand.Rand) float64 {
	switch r.IntN(8) {
	case 0:
		return math.Copysign(0, -1)
	case 1:
		return []float64{0, 1, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1)}[r.IntN(7)]
	case 2:
		if f := math.Float64frombits(r.Uint64()); !math.IsNaN(f) {
			return f
		}
		return 0
	case 3:
		return r.NormFloat64()
	default:
		return float64(r.IntN(7)) - 3
	}
}
