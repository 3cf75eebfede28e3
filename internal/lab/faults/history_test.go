package faults

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"rankcache"
	"rankcache/wire"
)

// TestHistoryIsEveryBoardThatWas compares the walk with a plain map, sorted anew
// at every seq; orders become known in any sequence.
func TestHistoryIsEveryBoardThatWas(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	scores, was := map[string]float64{}, [][]rankcache.Entry{nil}
	var updates []wire.Update
	for seq := range uint64(500) {
		u := wire.Update{Member: memberName(rng.IntN(30)), Op: wire.OpSet, Score: float64(rng.IntN(5)), Seq: seq + 1}
		if scores[u.Member] = u.Score; rng.IntN(4) == 0 {
			u.Op = wire.OpDelete
			delete(scores, u.Member)
		}
		updates, was = append(updates, u), append(was, sorted(scores))
	}
	rng.Shuffle(len(updates), func(i, j int) { updates[i], updates[j] = updates[j], updates[i] })
	h := newHistory()
	for _, u := range updates {
		if err := h.add(u); err != nil {
			t.Fatal(err)
		}
	}
	for range 500 {
		seq := rng.Uint64N(501)
		if h.walk(seq); !slices.Equal(h.rows, was[seq]) {
			t.Fatalf("at %d: %v, want %v", seq, h.rows, was[seq])
		}
		for i, e := range h.rows {
			if h.rank(e.Member) != i+1 {
				t.Fatalf("at %d: rank of %s is %d, want %d", seq, e.Member, h.rank(e.Member), i+1)
			}
		}
	}
	cut := h.until(200)
	if cut.walk(200); !slices.Equal(cut.rows, was[200]) || cut.known() != 200 {
		t.Errorf("cut at 200: %v", cut.rows)
	}
}

func sorted(scores map[string]float64) (rows []rankcache.Entry) {
	for _, m := range slices.Collect(maps.Keys(scores)) {
		rows = append(rows, rankcache.Entry{Member: m, Score: scores[m]})
	}
	slices.SortFunc(rows, func(a, b rankcache.Entry) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Member, a.Member))
	})
	return rows
}
