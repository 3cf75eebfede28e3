package localboard

import (
	"math/rand/v2"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/wire"
)

// TestWholePage compares page, standing and neighbours with those that are read one by one,
// and looks for the better score row by row.
func TestWholePage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	g := &generator{Rand: r, members: 3000, scores: func(r *rand.Rand) float64 { return float64(r.IntN(160)-20) / 4 }}
	b := newBoard(t)
	for range 4 {
		b.Apply(g.batch(2000, true))
		b.Publish()
		all := []rankcache.Page{b.Page(0, 3000, rankcache.Descending), b.Page(0, 3000, rankcache.Ascending)}
		for range 300 {
			q := rankcache.PageQuery{Order: rankcache.Direction(r.IntN(2)), Start: r.IntN(700), Limit: r.IntN(60),
				Member: g.id(), Around: r.IntN(40) - 1, Gap: r.IntN(4) > 0, Mode: rankcache.RankMode(r.IntN(3)), Percentile: r.IntN(2) == 0, Form: rankcache.ScoreForm(r.IntN(2))}
			got, top := b.WholePage(q)
			if diff := gocmp.Diff(pieceByPiece(b, &q, all[q.Order]), got); diff != "" || top != b.Top() {
				t.Fatalf("%+v (-want +got):\n%s", q, diff)
			}
		}
	}
}

func pieceByPiece(b *Board, q *rankcache.PageQuery, all rankcache.Page) (w rankcache.WholePage) {
	w.Page = b.Page(q.Start, q.Limit, q.Order)
	if q.Limit > 0 {
		w.Ahead = aheadRowByRow(all, q.Start, q)
	}
	rows, _ := b.Standings(nil, []string{q.Member}, q.Order)
	if w.Own.Standing = rows[0]; rows[0].Rank == 0 {
		return w
	}
	if q.Around >= 0 {
		page, _, _ := b.Around(q.Member, q.Around, q.Order)
		w.Own.First, w.Own.Neighbours = page.Start, page.Entries
		w.Own.Ahead = aheadRowByRow(all, page.Start, q)
	} else {
		w.Own.Ahead = aheadRowByRow(all, rows[0].Rank-1, q)
	}
	for i := rows[0].Rank - 2; q.Gap && i >= 0 && !w.Own.HasBetter; i-- {
		if e := b.Page(i, 1, q.Order).Entries[0]; !q.Form.Same(e.Score, rows[0].Score) {
			w.Own.Better, w.Own.HasBetter = e.Score, true
		}
	}
	return w
}

// aheadRowByRow looks at each row of a board before the one at the index.
func aheadRowByRow(all rankcache.Page, index int, q *rankcache.PageQuery) (a rankcache.Ahead) {
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

// TestRankedStandings compares what is ahead of several members with what is ahead of each.
func TestRankedStandings(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	g := &generator{Rand: r, members: 3000, scores: func(r *rand.Rand) float64 { return float64(r.IntN(160)-20) / 4 }}
	b := newBoard(t)
	b.Apply(g.batch(2000, true))
	b.Publish()
	for range 300 {
		q := rankcache.PageQuery{Order: rankcache.Direction(r.IntN(2)), Around: -1, Mode: rankcache.RankMode(r.IntN(3)), Percentile: true, Form: rankcache.ScoreForm(r.IntN(2))}
		members := make([]string, 1+r.IntN(40))
		for i := range members {
			members[i] = g.id()
		}
		rows, ahead, stamp := b.RankedStandings(q, nil, members)
		for i, m := range members {
			q.Member = m
			if w, _ := b.WholePage(q); w.Own.Standing != rows[i] || w.Own.Ahead != ahead[i] || w.Stamp != stamp {
				t.Fatalf("%+v: %+v with %+v ahead at %+v, want %+v at %+v", q, rows[i], ahead[i], stamp, w.Own, w.Stamp)
			}
		}
	}
}

func TestWholePageBeforePublish(t *testing.T) {
	b := newBoard(t)
	b.Apply([]wire.Update{set("a", 1, 1)})
	w, top := b.WholePage(rankcache.PageQuery{Limit: 5, Member: "a", Around: 2, Gap: true})
	if diff := gocmp.Diff(rankcache.WholePage{}, w); diff != "" || top != nil {
		t.Errorf("%v (-want +got):\n%s", top, diff)
	}
}
