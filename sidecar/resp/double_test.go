package resp

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestScoresAreWritten(t *testing.T) {
	for score, want := range map[float64]string{0: "0", math.Copysign(0, -1): "0", -7: "-7", 99999999999999984: "99999999999999984", 1e17: "100000000000000000", 0.1: "0.1",
		1048576.9999995232: "1048576.9999995232", -1e300: "-1e+300", 5e-324: "5e-324"} {
		if got := string(appendScore(nil, score)); got != want {
			t.Errorf("%v is written %s, want %s", score, got, want)
		}
	}
}

// TestScoresReadBack: what is written is the number, for any.
func TestScoresReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200_000 {
		score := math.Float64frombits(r.Uint64())
		if i%2 == 0 {
			score = r.NormFloat64() * math.Pow(10, float64(r.IntN(30)-10))
		}
		if math.IsNaN(score) || math.IsInf(score, 0) {
			continue
		}
		text := string(appendScore(nil, score))
		if back, err := strconv.ParseFloat(text, 64); err != nil || back != score {
			t.Fatalf("%v is written %s, which is %v (%v)", score, text, back, err)
		}
	}
}
