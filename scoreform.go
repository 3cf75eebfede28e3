package rankcache

import "math"

// ScoreForm is how the scores of a board are shown. Redis, copies, updates and checksums have
// raw scores; whoever asks for a score is given what [ScoreForm.Shown] makes of one, and
// nothing else converts them.
type ScoreForm uint8

// The forms, by the names that settings of classes have for them.
const (
	ScoreNumber  ScoreForm = iota // as they are
	ScoreInteger                  // without the fraction, which is a tie-break
)

// forms are all of them, those first that change less.
var forms = [...]ScoreForm{ScoreNumber, ScoreInteger}

// Shown returns what is shown of a raw score.
func (f ScoreForm) Shown(raw float64) float64 {
	if f == ScoreInteger {
		return math.Floor(raw)
	}
	return raw
}

// Same reports whether two raw scores are shown as the same.
func (f ScoreForm) Same(a, b float64) bool { return f.Shown(a) == f.Shown(b) }

// FormOf returns the form that shows a raw score as another number, false if none does.
func FormOf(raw, shown float64) (ScoreForm, bool) {
	for _, f := range forms {
		if f.Shown(raw) == shown {
			return f, true
		}
	}
	return 0, false
}
