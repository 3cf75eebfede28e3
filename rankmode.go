package rankcache

import "errors"

// ErrRankMode reports that ranks of the requested mode can't be counted for a board or a row.
var ErrRankMode = errors.New("rank mode is not available")

// RankMode decides which ranks members with the same score have. The order of the rows is the same in all modes.
type RankMode uint8

// The modes, by the names that statistics has for them.
const (
	Ordinal     RankMode = iota // 1 2 3 4: each row has its own rank
	Competition                 // 1 2 2 4: 1 + the members with a better score
	Dense                       // 1 2 2 3: 1 + the distinct better scores
	Approx                      // about Ordinal, by a [Ladder] where Redis would have to count
)

var rankModes = [...]string{"ordinal", "competition", "dense", "approx"}

// String returns the mode as it is written in requests.
func (m RankMode) String() string { return rankModes[m] }

// counts reports whether ranks are counted from what is ahead of a row.
func (m RankMode) counts() bool { return m == Competition || m == Dense }

// ParseRankMode is the inverse of [RankMode.String].
func ParseRankMode(text string) (RankMode, bool) {
	for m, name := range rankModes {
		if name == text {
			return RankMode(m), true
		}
	}
	return Ordinal, false
}

const MaxDense = 100_000 // the most members with a better score that dense ranks are counted over

// Ahead counts what is better than one row's score: members, and their distinct scores, -1: not counted.
type Ahead struct{ Members, Scores int }

// Rank returns the rank of the row with the 0-based index.
func (a Ahead) Rank(mode RankMode, index int) int {
	switch mode {
	case Competition:
		return a.Members + 1
	case Dense:
		return a.Scores + 1
	}
	return index + 1
}

// Percentile returns in 1/100 %, rounded down, how many members have this score or a worse one: 10,000 for the best.
func (a Ahead) Percentile(members int) int {
	if a.Members >= members { // of an empty board
		return 0
	}
	return int(uint64(members-a.Members) * 10_000 / uint64(members))
}

// Next returns what is ahead of the row at index with the score, given that a is ahead of the row before it.
func (a Ahead) Next(index int, score, before float64, form ScoreForm) Ahead {
	if form.Same(score, before) {
		return a
	}
	if a.Members = index; a.Scores >= 0 {
		a.Scores++
	}
	return a
}
