package rankcache

import (
	"math"
	"sort"
	"time"
)

// Steps of a [Ladder]: it has each of the first ranks, then one in each hundredth.
const (
	LadderFirst = 100 // ranks of which each is in a ladder
	MaxRungs    = 2_000
	MinLadder   = 10_000 // the least members of a board for which a ladder is worth making
)

// Ladder is the scores that a board had at ranks in steps of 1 %: with it a score is enough to tell
// about where a member stands. It is immutable, and its methods may be called concurrently.
type Ladder struct {
	Run, Seq uint64    // of the board, when its first rung was read
	Changes  int       // how many were made while the rungs were read: each moves a rank by one at most
	Members  int       // the number of members of the board then
	At       time.Time // before the first rung was read, by the clock of this process
	Rungs    []Rung    // rows of the board in descending direction, each behind the one before
}

// Rung is the row at one 1-based rank.
type Rung struct {
	Entry
	Rank int
}

// NextRung returns the rank that follows in a ladder.
func NextRung(rank int) int { return rank + max(1, rank/LadderFirst) }

// Place returns a member's rank in a direction among so many members, and its error if nothing has changed since.
func (l *Ladder) Place(e Entry, dir Direction, members int) (rank, within int) {
	before, within := l.count(e.Score, func(r *Rung) bool { return r.Before(e) })
	if dir == Ascending {
		return min(max(members-before, 1), members), within
	}
	return min(before+1, members), within
}

// Ahead returns about how many members have a better score than a raw one, which is shown in a form.
func (l *Ladder) Ahead(score float64, form ScoreForm, dir Direction, members int) Ahead {
	bound, included := form.Better(score, dir)
	if dir == Ascending { // those that are not better are at the bound, or beyond
		included = true
	}
	better, _ := l.count(bound, func(r *Rung) bool { return r.Score > bound || included && r.Score == bound })
	if dir == Ascending {
		better = members - better
	}
	return Ahead{Members: min(max(better, 0), max(members-1, 0)), Scores: -1}
}

// Before reports whether a row is before another one in descending direction.
func (e Entry) Before(other Entry) bool {
	return e.Score > other.Score || e.Score == other.Score && e.Member > other.Member
}

// count returns about how many rows are above a place with a score, and how far off that may be.
func (l *Ladder) count(score float64, above func(*Rung) bool) (rows, within int) {
	n := sort.Search(len(l.Rungs), func(i int) bool { return !above(&l.Rungs[i]) })
	least, most := 0, max(l.Members, 0)
	if n > 0 {
		least = l.Rungs[n-1].Rank
	}
	if n < len(l.Rungs) {
		most = l.Rungs[n].Rank - 1
	}
	switch {
	case n == 0:
		rows = least
	case n == len(l.Rungs):
		rows = most
	default:
		rows = least + int(share(l.Rungs[n-1].Score, score, l.Rungs[n].Score)*float64(most-least)+0.5)
	}
	return rows, max(rows-least, most-rows) + l.Changes
}

// share returns how far from the first to the last score one between them is, 0 to 1; a half if these don't tell.
func share(first, score, last float64) float64 {
	s := (first - score) / (first - last)
	if math.IsNaN(s) || math.IsInf(first-last, 0) {
		return 0.5
	}
	return min(max(s, 0), 1)
}
