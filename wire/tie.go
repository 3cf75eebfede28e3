package wire

import "math"

// MaxTieScore is the highest score, and its negative the lowest, of a board that ranks
// equal scores by who came to them first or last.
const MaxTieScore = 1 << 40

// maxTieDigits is the most binary digits of a tie-break.
const maxTieDigits = 40

// tieSteps is how many tie-breaks a whole score has: one more than its greatest. All
// members with one score have the same number.
func tieSteps(score float64) uint64 {
	_, digits := math.Frexp(score) // before the binary point
	return 1 << min(maxTieDigits, 53-digits)
}

// TieScore returns what Redis keeps for a whole score that a member came to at seq reach:
// the score and a fraction below 1, which ranks the first comer before the others if
// scores descend; with last, the last one. apply.lua computes the same. From the seq on
// that [TieLimit] returns, all have the same fraction.
func TieScore(score float64, reach uint64, last bool) float64 {
	steps := tieSteps(score)
	n := min(reach, steps-1)
	if !last {
		n = steps - 1 - n
	}
	return score + float64(n)/float64(steps)
}

// TieLimit returns the seq from which on members that come to the whole score of a raw one tie
// among themselves.
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
