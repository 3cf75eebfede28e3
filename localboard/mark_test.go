package localboard

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMarkSortsAsScoresDo(t *testing.T) {
	scores := []float64{-math.MaxFloat64, -1e300, -2, -1, -math.SmallestNonzeroFloat64, 0,
		math.SmallestNonzeroFloat64, 0.5, 1, 1 << 53, 1e300, math.MaxFloat64, math.Inf(1)}
	for i, a := range scores {
		if newMark(a, 0).value() != a {
			t.Errorf("%v came back as %v", a, newMark(a, 0).value())
		}
		if newMark(a, 0).before(mark{}) != 1 {
			t.Errorf("%v does not stand before the zero mark", a)
		}
		for j, b := range scores {
			if got := newMark(a, 7).before(newMark(b, 7)) == 1; got != (i > j) {
				t.Errorf("%v before %v: %v", a, b, got)
			}
		}
	}
	if newMark(1, 3).before(newMark(1, 2)) != 1 || newMark(1, 2).before(newMark(1, 2)) != 0 || newMark(1, 2).before(newMark(1, 3)) != 0 {
		t.Error("of equal scores the greater key stands first")
	}
}

// Of every length up to some, with ties.
func TestCountBefore(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 600 {
		marks := make([]mark, n)
		for i := range marks {
			marks[i] = mark{1 + rng.Uint64N(uint64(n)), rng.Uint64N(3)}
		}
		slices.SortFunc(marks, compareMarks)
		for range 20 {
			a := mark{rng.Uint64N(uint64(n) + 2), rng.Uint64N(4)}
			want, _ := slices.BinarySearchFunc(marks, a, compareMarks)
			if got := countBefore(marks, a); got != want {
				t.Fatalf("%d of %d stand before %v, want %d", got, n, a, want)
			}
			if n <= nodeMarks {
				var c chunk
				copy(c.marks[:], marks)
				if got := countInNode(&c.marks, a); got != want {
					t.Fatalf("%d of a chunk's %d stand before %v, want %d", got, n, a, want)
				}
			}
		}
	}
}

// compareMarks sorts the greater mark first, written another way than before.
func compareMarks(a, b mark) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.key, a.key))
}
