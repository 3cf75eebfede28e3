package wire

import (
	"math"
	"math/rand/v2"
	"testing"

	"rankcache"
)

// A tie-break neither changes the score that is shown nor the order of two scores, and an
// earlier reach is ranked above a later one, up to the limit.
func TestTieScore(t *testing.T) {
	for range 200_000 {
		score := float64(rand.Int64N(2<<rand.IntN(40)) - rand.Int64N(2<<rand.IntN(40)))
		limit := TieLimit(score)
		a, b := rand.Uint64N(limit), rand.Uint64N(limit)
		for _, reach := range []uint64{a, b, 1, limit - 1, limit, limit + 1, math.MaxUint64} {
			for _, last := range []bool{false, true} {
				if s := TieScore(score, reach, last); rankcache.ScoreInteger.Shown(s) != score || s < score || s >= score+1 {
					t.Fatalf("%v reached at %d is kept as %v, shown as %v", score, reach, s, rankcache.ScoreInteger.Shown(s))
				}
			}
		}
		first, last := TieScore(score, a, false)-TieScore(score, b, false), TieScore(score, a, true)-TieScore(score, b, true)
		if sign(first) != -sign(float64(a)-float64(b)) || sign(last) != -sign(first) {
			t.Fatalf("%v reached at %d and %d: %v, %v", score, a, b, first, last)
		}
		if TieScore(score, limit, false) != TieScore(score, limit+a, false) {
			t.Fatalf("%v differs beyond %d", score, limit)
		}
	}
}

func sign(f float64) int {
	switch {
	case f > 0:
		return 1
	case f < 0:
		return -1
	}
	return 0
}

// The limits of the documentation.
func TestTieLimit(t *testing.T) {
	for score, want := range map[float64]uint64{0: 1<<40 - 1, 1: 1<<40 - 1, -8191: 1<<40 - 1, 8191: 1<<40 - 1, 8192: 1<<39 - 1, 1e9: 1<<23 - 1,
		1 << 31: 1<<21 - 1, -(1 << 31): 1<<21 - 1, MaxTieScore: 1<<12 - 1, -MaxTieScore: 1<<12 - 1} {
		if got := TieLimit(score); got != want {
			t.Errorf("%v: %d, want %d", score, got, want)
		}
	}
}
