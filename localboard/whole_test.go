package localboard

import (
	"math/rand/v2"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rankcache"
)

// TestWholeAnswer compares rows, standing and neighbours with those that are read one by one,
// and looks for the better score row by row.
func TestWholeAnswer(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	g := &generator{Rand: r, members: 3000, scores: func(r *rand.Rand) float64 { return float64(r.IntN(160)-20) / 4 }}
	b := newBoard(t)
	for range 4 {
		b.Apply(g.batch(2000, true))
		b.Publish()
		all := []rankcache.Answer{page(b, 0, 3000, rankcache.Descending), page(b, 0, 3000, rankcache.Ascending)}
		for range 300 {
			q := rankcache.Query{Order: rankcache.Direction(r.IntN(2)), Start: r.IntN(700), Limit: r.IntN(60),
				Members: []string{g.id()}, Around: max(2*r.IntN(40)-1, 0), Gap: r.IntN(4) > 0, Mode: rankcache.RankMode(r.IntN(3)), Percentile: r.IntN(2) == 0, Form: rankcache.ScoreForm(r.IntN(4))}
			got := ask(b, q)
			if diff := gocmp.Diff(pieceByPiece(b, &q, all[q.Order]), got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(got, "Kept")); diff != "" || (got.Kept != nil) != (q.Limit == 0 || q.Covers(len(topOf(b).Entries), got.Members)) {
				t.Fatalf("%+v (-want +got):\n%s", q, diff)
			}
		}
	}
}

func pieceByPiece(b *Board, q *rankcache.Query, all rankcache.Answer) (w rankcache.Answer) {
	w = page(b, q.Start, q.Limit, q.Order)
	if w.Form = q.Form; q.Limit > 0 {
		w.Ahead = aheadRowByRow(all, q.Start, q)
	}
	w.Own = ask(b, rankcache.Query{Members: q.Members, Order: q.Order}).Own
	own := &w.Own[0]
	if own.Rank == 0 {
		return w
	}
	if own.Ahead = aheadRowByRow(all, own.Rank-1, q); q.Around > 0 {
		near, _, _ := around(b, own.Member, q.Neighbours(), q.Order)
		own.First, own.Neighbours, own.Ahead = near.Start, near.Entries, aheadRowByRow(all, near.Start, q)
	}
	for i := own.Rank - 2; q.Gap && i >= 0 && !own.HasBetter; i-- {
		if e := page(b, i, 1, q.Order).Entries[0]; !q.Form.Same(e.Score, own.Score) {
			own.Better, own.HasBetter = e.Score, true
		}
	}
	return w
}

// aheadRowByRow looks at each row of a board before the one at the index.
func aheadRowByRow(all rankcache.Answer, index int, q *rankcache.Query) (a rankcache.Ahead) {
	if !q.Ranked() || index >= len(all.Entries) {
		return a
	}
	for i, e := range all.Entries[:index] {
		if !q.Form.Same(e.Score, all.Entries[index].Score) {
			if a.Members++; i == 0 || !q.Form.Same(e.Score, all.Entries[i-1].Score) {
				a.Scores++
			}
		}
	}
	if q.Mode != rankcache.Dense {
		a.Scores = -1
	}
	return a
}

// TestShownRanges compares rows of shown scores, in both directions, with a look at each row.
func TestShownRanges(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 6))
	g := &generator{Rand: r, members: 900, scores: func(r *rand.Rand) float64 { return float64(r.IntN(160)-20) / 4 }}
	b := newBoard(t)
	for range 3 {
		b.Apply(g.batch(700, true))
		b.Publish()
		for range 400 {
			least := float64(r.IntN(200)-60) / 4
			q := rankcache.Query{Order: rankcache.Direction(r.IntN(2)), Start: r.IntN(1 + r.IntN(90)), Limit: r.IntN(60), Form: rankcache.ScoreForm(r.IntN(4)),
				Range: &rankcache.ScoreRange{Least: least, Most: least + float64(r.IntN(20))/4, Shown: true}}
			before, within, first := 0, []rankcache.Entry(nil), false
			for _, e := range page(b, 0, 3000, q.Order).Entries {
				if s := q.Form.Shown(e.Score); s >= q.Range.Least && s <= q.Range.Most {
					within, first = append(within, e), true
				} else if beyond := s > q.Range.Most; !first && beyond == ((q.Order == rankcache.Descending) != q.Form.Lowest()) {
					before++
				}
			}
			want := within[min(q.Start, len(within)):min(q.Start+q.Limit, len(within))]
			got := ask(b, q)
			if diff := gocmp.Diff(want, got.Entries, cmpopts.EquateEmpty()); diff != "" || got.Matches != len(within) || got.Start != before+q.Start || got.Kept != nil {
				t.Fatalf("%+v of %+v: start %d, %d matches, want %d, %d (-want +got):\n%s", q, q.Range, got.Start, got.Matches, before+q.Start, len(within), diff)
			}
		}
	}
}

// TestSeveralMembers compares what is ahead of several members with what is ahead of each.
func TestSeveralMembers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	g := &generator{Rand: r, members: 3000, scores: func(r *rand.Rand) float64 { return float64(r.IntN(160)-20) / 4 }}
	b := newBoard(t)
	b.Apply(g.batch(2000, true))
	b.Publish()
	for range 300 {
		q := rankcache.Query{Order: rankcache.Direction(r.IntN(2)), Around: r.IntN(2) * 5, Mode: rankcache.RankMode(r.IntN(3)), Percentile: true, Form: rankcache.ScoreForm(r.IntN(4))}
		for range 1 + r.IntN(40) {
			q.Members = append(q.Members, g.id())
		}
		got := ask(b, q)
		for i, m := range q.Members {
			one := q
			one.Members = []string{m}
			if diff := gocmp.Diff(ask(b, one).Own[0], got.Own[i]); diff != "" || got.Own[i].Stamp != got.Stamp {
				t.Fatalf("%+v (-want +got):\n%s", q, diff)
			}
		}
	}
}
