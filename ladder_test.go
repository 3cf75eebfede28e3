package rankcache

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// ladderOf makes the ladder of rows, best first.
func ladderOf(rows []Entry) *Ladder {
	l := &Ladder{Run: 1, Seq: 1, Members: len(rows)}
	for rank := 1; ; rank = min(NextRung(rank), len(rows)) {
		l.Rungs = append(l.Rungs, Rung{Entry: rows[rank-1], Rank: rank})
		if rank == len(rows) {
			return l
		}
	}
}

// scoresOf are boards by how their scores are spread.
var scoresOf = map[string]func(*rand.Rand) float64{
	"even":     func(r *rand.Rand) float64 { return float64(r.IntN(1 << 40)) },
	"few":      func(r *rand.Rand) float64 { return float64(r.IntN(20) - 10) },
	"equal":    func(*rand.Rand) float64 { return 7 },
	"skewed":   func(r *rand.Rand) float64 { return math.Floor(math.Exp(r.ExpFloat64() * 3)) },
	"fraction": func(r *rand.Rand) float64 { return float64(r.IntN(300)) + r.Float64() },
	"extreme": func(r *rand.Rand) float64 {
		return []float64{-math.MaxFloat64, -1, 0, 1, math.MaxFloat64}[r.IntN(5)] * r.Float64()
	},
}

// TestLadderIsWithin compares each member's rank, and what is ahead of it, with the true ones, in both directions and each form.
func TestLadderIsWithin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, score := range scoresOf {
		rows := make([]Entry, 20_000)
		for i := range rows {
			rows[i] = Entry{fmt.Sprint("m", r.IntN(10), i), score(r)}
		}
		slices.SortFunc(rows, func(a, b Entry) int {
			return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Member, a.Member))
		})
		l, n := ladderOf(rows), len(rows)
		if len(l.Rungs) > MaxRungs {
			t.Fatalf("%d rungs", len(l.Rungs))
		}
		for i, e := range rows {
			rank, within := l.Place(e, Descending, n)
			if off := rank - (i + 1); max(off, -off) > within || within > max(i/LadderFirst, 0)+1 {
				t.Fatalf("%s: rank %d within %d of %+v, want %d", name, rank, within, e, i+1)
			}
			rank, within = l.Place(e, Ascending, n)
			if off := rank - (n - i); max(off, -off) > within {
				t.Fatalf("%s: ascending rank %d within %d of %+v, want %d", name, rank, within, e, n-i)
			}
		}
		for form := range formsEnd {
			checkAhead(t, name, l, rows, form)
		}
	}
}

// checkAhead wants what is ahead to be off by a step of the ladder at most.
func checkAhead(t *testing.T, name string, l *Ladder, rows []Entry, form ScoreForm) {
	t.Helper()
	better, n := 0, len(rows)
	for i, e := range rows {
		if i > 0 && !form.Same(rows[i-1].Score, e.Score) {
			better = i
		}
		got := l.Ahead(e.Score, form, Descending, n).Members
		if off := got - better; max(off, -off) > better/LadderFirst+1 {
			t.Fatalf("%s, form %d: %d ahead of %+v, want %d", name, form, got, e, better)
		}
	}
	worse := 0
	for i := n - 1; i >= 0; i-- {
		if i < n-1 && !form.Same(rows[i+1].Score, rows[i].Score) {
			worse = n - 1 - i
		}
		got := l.Ahead(rows[i].Score, form, Ascending, n).Members
		if off := got - worse; max(off, -off) > n/LadderFirst+1 {
			t.Fatalf("%s, form %d: ascending, %d ahead of %+v, want %d", name, form, got, rows[i], worse)
		}
	}
}

// TestLadderOfAnotherBoard: members that have come, and boards that have shrunk, get ranks that are on the board.
func TestLadderOfAnotherBoard(t *testing.T) {
	var rows []Entry
	for i := range 500 {
		rows = append(rows, Entry{fmt.Sprint(i), float64(1000 - i)})
	}
	l := ladderOf(rows)
	for _, c := range []struct {
		e             Entry
		members, rank int
	}{{Entry{"best", 2000}, 501, 1}, {Entry{"worst", -1}, 501, 501}, {Entry{"a", 501}, 3, 3}, {Entry{"only", 1}, 1, 1}, {Entry{"best", math.Inf(1)}, 501, 1}} {
		if rank, _ := l.Place(c.e, Descending, c.members); rank != c.rank {
			t.Errorf("%+v has rank %d, want %d", c.e, rank, c.rank)
		}
		if rank, _ := l.Place(c.e, Ascending, c.members); rank < 1 || rank > c.members {
			t.Errorf("%+v has ascending rank %d of %d", c.e, rank, c.members)
		}
		if p := l.Ahead(c.e.Score, ScoreNumber, Descending, c.members).Percentile(c.members); p < 0 || p > 10_000 {
			t.Errorf("%+v has percentile %d", c.e, p)
		}
	}
	l.Changes = 7
	if _, within := l.Place(rows[50], Descending, 500); within != 7 {
		t.Errorf("within %d, want the 7 changes while the ladder was made", within)
	}
}
