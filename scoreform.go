package rankcache

import "math"

// ScoreForm is how a board's scores are shown. Redis, copies, updates and checksums have raw scores, the highest the
// best; [ScoreForm.Shown] and [ScoreForm.Raw] alone convert them. The values are bits.
type ScoreForm uint8

// The forms.
const (
	ScoreNumber  ScoreForm = 0 // as they are
	ScoreInteger ScoreForm = 1 // without the fraction, which is a tie-break
	ScoreLowest  ScoreForm = 2 // negated, as the lowest is the best
	formsEnd     ScoreForm = 4
)

// Integer reports whether scores are shown without their fraction.
func (f ScoreForm) Integer() bool { return f&ScoreInteger != 0 }

// Lowest reports whether the lowest score that is shown is the best.
func (f ScoreForm) Lowest() bool { return f&ScoreLowest != 0 }

// Shown returns what is shown of a raw score.
func (f ScoreForm) Shown(raw float64) float64 {
	if f.Integer() {
		raw = math.Floor(raw)
	}
	return f.Raw(raw)
}

// Raw returns the raw score, without a tie-break, that is shown as a number, or how much an increment by it adds.
func (f ScoreForm) Raw(shown float64) float64 {
	if f.Lowest() {
		return 0 - shown // never -0
	}
	return shown
}

// Raws returns the least and greatest raw scores shown as one from least to most. least is above most for none.
func (f ScoreForm) Raws(least, most float64) (lo, hi float64) {
	if f.Lowest() {
		least, most = f.Raw(most), f.Raw(least)
	}
	if !f.Integer() {
		return least, most
	}
	most = math.Floor(most)
	if next := most + 1; next != most { // else it has no fraction
		most = math.Nextafter(next, math.Inf(-1))
	}
	return math.Ceil(least), most
}

// Same reports whether two raw scores are shown as the same.
func (f ScoreForm) Same(a, b float64) bool { return f.Shown(a) == f.Shown(b) }

// Better returns where the raw scores begin that are shown as better than one: those beyond
// bound are, and bound itself if it is included. In ascending direction better is lower.
func (f ScoreForm) Better(raw float64, dir Direction) (bound float64, included bool) {
	whole := math.Floor(raw)
	switch {
	case !f.Integer() || whole+1 == whole: // it has no fraction
		return raw, false
	case dir == Ascending:
		return whole, false
	}
	return whole + 1, true
}

// Direction returns in which direction raw scores are read: Descending or Ascending.
func (f ScoreForm) Direction(d Direction) Direction {
	switch {
	case d < HighestFirst:
		return d
	case (d == LowestFirst) == f.Lowest():
		return Descending
	}
	return Ascending
}

// Named returns which shown score comes first in a direction: HighestFirst or LowestFirst.
func (f ScoreForm) Named(d Direction) Direction {
	if (f.Direction(d) == Ascending) == f.Lowest() {
		return HighestFirst
	}
	return LowestFirst
}

// FormOf returns the form that shows a raw score as another number, that of fewest bits; false if none does.
func FormOf(raw, shown float64) (ScoreForm, bool) {
	for f := range formsEnd {
		if f.Shown(raw) == shown {
			return f, true
		}
	}
	return 0, false
}
