package origin

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"rankcache"
)

// MULTI and scripts return the same doubles, sorted as [rankcache.Descending] and
// [rankcache.Ascending] define.
func TestSortOrderAndDoubles(t *testing.T) {
	b := newBoard(t)
	entries := randomEntries(300)
	b.fill(t, 1, entries...)
	slices.SortFunc(entries, func(x, y rankcache.Entry) int {
		switch {
		case x.Score > y.Score:
			return -1
		case x.Score < y.Score:
			return 1
		}
		return strings.Compare(y.Member, x.Member)
	})
	page := b.ask(rankcache.Query{Limit: rankcache.MaxTop})
	must(t, page.Err)
	equal(t, "page", page.Entries, entries)
	tops := b.tops([]rankcache.BoardID{b.id, b.id}, rankcache.MaxTop)
	must(t, tops[0].Err)
	equal(t, "top", tops[0].Entries, entries)
	for _, e := range append(page.Entries, tops[0].Entries...) {
		if e.Score == 0 && math.Signbit(e.Score) {
			t.Error(e.Member, "has -0")
		}
	}
	page = b.ask(rankcache.Query{Limit: rankcache.MaxTop, Order: rankcache.Ascending})
	must(t, page.Err)
	slices.Reverse(entries)
	equal(t, "asc", page.Entries, entries)
}

// randomEntries returns members with shared prefixes and scores of every kind, with
// ties and with both zeroes.
func randomEntries(n int) []rankcache.Entry {
	special := []float64{0, math.Copysign(0, -1), math.MaxFloat64, -math.MaxFloat64,
		math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, 1 << 53, 0.1, 1e21, 1e-7}
	members := make(map[string]bool)
	for len(members) < n {
		members["m"+strings.Repeat("x", rand.IntN(3))+string(rune('0'+rand.IntN(80)))+strings.Repeat("é", rand.IntN(3))] = true
	}
	var entries []rankcache.Entry
	for m := range members {
		score := math.Float64frombits(rand.Uint64())
		if math.IsNaN(score) || math.IsInf(score, 0) || rand.IntN(2) == 0 {
			score = special[rand.IntN(len(special))]
		}
		entries = append(entries, rankcache.Entry{Member: m, Score: score})
	}
	return entries
}
