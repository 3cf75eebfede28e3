package localboard

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rankcache"
	"rankcache/internal/testkit"
)

// TestByScore compares ranges with a walk through all rows.
func TestByScore(t *testing.T) {
	b := New("1_2_3")
	var es []rankcache.Entry
	for i := range 3000 {
		es = append(es, rankcache.Entry{Member: strconv.Itoa(i), Score: float64(rand.IntN(400)-100) / 2})
	}
	if err := b.Load(1, es); err != nil {
		t.Fatal(err)
	}
	b.Publish()
	bound := func() float64 {
		return [...]float64{math.Inf(-1), math.Inf(1), float64(rand.IntN(420)-110) / 2, float64(rand.IntN(400) - 100), -60, 200}[rand.IntN(6)]
	}
	for range testkit.Sized(500, 2000) {
		lo, hi, offset, limit := bound(), bound(), rand.IntN(40), rand.IntN(60)
		direction := rankcache.Direction(rand.IntN(2))
		var want []rankcache.Entry
		for _, e := range page(b, 0, len(es), direction).Entries {
			if e.Score >= lo && e.Score <= hi {
				want = append(want, e)
			}
		}
		all := len(want)
		want = want[min(offset, all):min(offset+limit, all)]
		page := ask(b, rankcache.Query{Range: &rankcache.ScoreRange{Least: lo, Most: hi}, Start: offset, Limit: limit, Order: direction})
		if page.Matches != all || page.Members != len(es) {
			t.Fatalf("%v to %v: %d rows of %d, want %d", lo, hi, page.Matches, page.Members, all)
		}
		if diff := cmp.Diff(want, page.Entries, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%v to %v, %d from %d, %v: -want +got\n%s", lo, hi, limit, offset, direction, diff)
		}
	}
}

func TestByScoreBeforeTheFirstPublication(t *testing.T) {
	if a := ask(New("1_2_3"), rankcache.Query{Range: &rankcache.ScoreRange{Most: 1}, Limit: 10}); a.Err != rankcache.ErrNotKept || a.Matches != 0 || len(a.Entries) > 0 {
		t.Errorf("%+v of a board that is not published", a)
	}
}
