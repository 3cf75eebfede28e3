package origin

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"rankcache"
)

// TestPlaces compares where members with a score stand, or would stand, with a walk through all rows, among ids whose bytes
// a locale would sort otherwise.
func TestPlaces(t *testing.T) {
	id := func(n int) string { return [...]string{"a", "B", "b-", "Ä", "z"}[n%5] + fmt.Sprint(n/5) }
	scores := []float64{-1e17, -2, 0, 0.1, 3, 1048576.9999995232, 1e300}
	b := newBoard(t)
	var es []rankcache.Entry
	for i := range 120 {
		es = append(es, rankcache.Entry{Member: id(2 * i), Score: scores[rand.IntN(len(scores))]})
	}
	b.fill(t, 5, es...)
	for _, direction := range []rankcache.Direction{rankcache.Descending, rankcache.Ascending} {
		rows := b.ask(rankcache.Query{Limit: 500, Order: direction}).Entries
		q := rankcache.Query{Order: direction, Around: 5, Gap: true, Mode: rankcache.Competition}
		var want []rankcache.Standing
		var better []int
		for range 300 {
			e := rankcache.Entry{Member: id(rand.IntN(260)), Score: scores[rand.IntN(len(scores))]}
			s, n := rankcache.Standing{Member: e.Member, Score: e.Score, Rank: 1}, 0
			for _, row := range rows {
				if row.Score != e.Score && (row.Score > e.Score) == (direction == rankcache.Descending) {
					n++
				}
				if above := row.Score > e.Score || row.Score == e.Score && row.Member > e.Member; row != e && above == (direction == rankcache.Descending) {
					s.Rank++
				}
			}
			q.Members, q.Scores, want, better = append(q.Members, e.Member), append(q.Scores, e.Score), append(want, s), append(better, n)
		}
		a := b.ask(q)
		must(t, a.Err)
		for i, own := range a.Own {
			if own.Standing != want[i] || own.HasBetter != (better[i] > 0) || own.HasBetter && own.Better != rows[better[i]-1].Score {
				t.Fatalf("%v: %+v, want %+v with %d better", direction, own, want[i], better[i])
			}
			for j, row := range own.Neighbours {
				if row != rows[own.First+j] {
					t.Fatalf("%v: row %d around %s is %v, want %v", direction, own.First+j, own.Member, row, rows[own.First+j])
				}
			}
		}
	}
	if a := b.ask(rankcache.Query{Members: []string{"a"}, Scores: []float64{1, 2}}); a.Err == nil {
		t.Error("two scores of one member")
	}
}
