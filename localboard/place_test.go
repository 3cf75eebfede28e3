package localboard

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"rankcache"
)

// TestPlaces compares where members with a score stand, or would stand, with a walk through all rows: equal scores, ids
// with the same first bytes and without them, and members that are on the board.
func TestPlaces(t *testing.T) {
	id := func(n int) string {
		return [...]string{"member-000", "other", "", "member-0000000000"}[n%4] + fmt.Sprint(n/4)
	}
	b := New("b")
	var es []rankcache.Entry
	for i := range 600 {
		es = append(es, rankcache.Entry{Member: id(2 * i), Score: float64(rand.IntN(5) - 2)})
	}
	if err := b.Load(1, es); err != nil {
		t.Fatal(err)
	}
	b.Publish()
	for _, direction := range []rankcache.Direction{rankcache.Descending, rankcache.Ascending} {
		rows := page(b, 0, len(es), direction).Entries
		var q rankcache.Query
		var want []rankcache.Own
		for range 400 {
			e := rankcache.Entry{Member: id(rand.IntN(1300)), Score: float64(rand.IntN(7) - 3)}
			o := rankcache.Own{Standing: rankcache.Standing{Member: e.Member, Score: e.Score, Rank: 1}}
			for _, row := range rows {
				if above := row.Score > e.Score || row.Score == e.Score && row.Member > e.Member; row != e && above == (direction == rankcache.Descending) {
					o.Rank++
				}
			}
			q.Members, q.Scores, want = append(q.Members, e.Member), append(q.Scores, e.Score), append(want, o)
		}
		q.Order, q.Around, q.Gap, q.Mode = direction, 5, true, rankcache.Competition
		for i, own := range ask(b, q).Own {
			if own.Standing != want[i].Standing {
				t.Fatalf("%v: %+v, want %+v", direction, own.Standing, want[i].Standing)
			}
			for j, row := range own.Neighbours {
				if row != rows[own.First+j] {
					t.Fatalf("%v: row %d around %s is %v, want %v", direction, own.First+j, own.Member, row, rows[own.First+j])
				}
			}
			if own.First > max(own.Rank-3, 0) || own.First+len(own.Neighbours) < min(own.Rank+1, len(rows)) {
				t.Fatalf("%v: rows %d to %d around rank %d", direction, own.First, own.First+len(own.Neighbours), own.Rank)
			}
		}
	}
}
