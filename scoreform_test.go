package rankcache_test

import (
	"math"
	"testing"

	"rankcache"
)

// TestScoreForms compares each form with what the words for it say, by brute force over scores
// with ties and fractions on both sides of zero.
func TestScoreForms(t *testing.T) {
	t.Parallel()
	const integerLowest = rankcache.ScoreInteger | rankcache.ScoreLowest
	shown := map[rankcache.ScoreForm]func(float64) float64{
		rankcache.ScoreNumber:  func(raw float64) float64 { return raw },
		rankcache.ScoreInteger: math.Floor,
		rankcache.ScoreLowest:  func(raw float64) float64 { return -raw },
		integerLowest:          func(raw float64) float64 { return -math.Floor(raw) },
	}
	var raws []float64
	for raw := -3.0; raw <= 3; raw += 0.25 {
		raws = append(raws, raw)
	}
	raws = append(raws, -1<<60, 1<<60, math.Copysign(0, -1))
	for form, want := range shown {
		for _, raw := range raws {
			if got := form.Shown(raw); got != want(raw) || form.Lowest() && got == 0 && math.Signbit(got) {
				t.Errorf("form %d shows %v as %v, want %v", form, raw, got, want(raw))
			}
			if got := form.Shown(form.Raw(raw)); !form.Integer() && got != raw {
				t.Errorf("form %d makes %v of %v", form, got, raw)
			}
			for _, dir := range []rankcache.Direction{rankcache.Descending, rankcache.Ascending} {
				bound, included := form.Better(raw, dir)
				for _, other := range raws {
					got := other > bound || included && other == bound
					better := want(other) > want(raw)
					if dir == rankcache.Ascending {
						got = other < bound || included && other == bound
					}
					if (dir == rankcache.Ascending) != form.Lowest() {
						better = want(other) < want(raw)
					}
					if got != better {
						t.Errorf("form %d, %s: %v better than %v: %v, want %v", form, dir, other, raw, got, better)
					}
				}
			}
		}
	}
}

// TestBetterOfShown counts what is better than a score that is shown, which no member needs to have.
func TestBetterOfShown(t *testing.T) {
	t.Parallel()
	raws := []float64{-5.5, -5.25, -5, -4.75, -1, 0, 0.5, 4, 4.5, 5, 5.25}
	for form := range rankcache.ScoreForm(4) {
		for shown := -6.0; shown <= 6; shown += 0.25 {
			bound, included := form.Better(form.Raw(shown), rankcache.Descending)
			got, want := 0, 0
			for _, raw := range raws {
				if raw > bound || included && raw == bound {
					got++
				}
				if s := form.Shown(raw); s > shown && !form.Lowest() || s < shown && form.Lowest() {
					want++
				}
			}
			if got != want {
				t.Errorf("form %d: %d members are better than %v, want %d", form, got, shown, want)
			}
		}
	}
}

func TestFormOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		raw, shown float64
		want       rankcache.ScoreForm
		ok         bool
	}{
		{0, 0, rankcache.ScoreNumber, true},
		{2.5, 2.5, rankcache.ScoreNumber, true},
		{2.5, 2, rankcache.ScoreInteger, true},
		{-2.5, 2.5, rankcache.ScoreLowest, true},
		{-2.5, 3, rankcache.ScoreLowest | rankcache.ScoreInteger, true},
		{-2.5, 2, 0, false},
	} {
		if got, ok := rankcache.FormOf(c.raw, c.shown); got != c.want || ok != c.ok {
			t.Errorf("FormOf(%v, %v) is %d, %v", c.raw, c.shown, got, ok)
		}
	}
}
