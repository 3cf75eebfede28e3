package wire

import "math"

const MaxTieScore = 1 << 40 // the highest score, and its negative the lowest, of a board with ties first or last

const maxTieDigits = 40 // the most binary digits of a tie-break

// tieSteps is how many tie-breaks a whole score has, one more than its greatest.
func tieSteps(score float64) uint64 {
	_, digits := math.Frexp(score) // before the binary point
	return 1 << min(maxTieDigits, 53-digits)
}

// TieScore returns what Redis keeps for a whole score reached at seq reach: it and a fraction below 1 that ranks the
// first comer first; with last, the last. apply.lua does the same, up to [TieLimit]'s seq.
func TieScore(score float64, reach uint64, last bool) float64 {
	steps := tieSteps(score)
	n := min(reach, steps-1)
	if !last {
		n = steps - 1 - n
	}
	return score + float64(n)/float64(steps)
}

// TieLimit returns the seq from which on members that come to the whole score of a raw one tie among themselves.
func TieLimit(raw float64) uint64 { return tieSteps(math.Floor(raw)) - 1 }

// IsTied reports whether the raw score of an update, of which nothing else tells how it is shown,
// has a tie-break: that of one of the board's changes so far, all of whole numbers.
func IsTied(u *Update) bool {
	whole := math.Floor(u.Score)
	if u.Op.Removes() || u.Score == whole || u.Delta != math.Floor(u.Delta) || math.Abs(whole) > MaxTieScore {
		return false
	}
	steps := tieSteps(whole)
	n := uint64((u.Score - whole) * float64(steps))
	return n <= u.Seq && TieScore(whole, n, true) == u.Score ||
		steps-1-n <= u.Seq && TieScore(whole, steps-1-n, false) == u.Score
}
