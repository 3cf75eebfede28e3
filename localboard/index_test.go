package localboard

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"rankcache/wire"
)

// TestTreeGrowsAndShrinks grows a board to many inner nodes row by row, moves rows
// between them, and removes rows everywhere until it is empty.
func TestTreeGrowsAndShrinks(t *testing.T) {
	const rows = 8 * maxChildren * buildFill
	b, m := newBoard(t), newModel()
	b.Publish() // from now on the index is updated row by row
	rng, seq := rand.New(rand.NewPCG(11, 12)), uint64(0)
	do := func(op wire.Op, i int) {
		seq++
		us := []wire.Update{{Member: fmt.Sprint("user:", i), Op: op, Score: float64(rng.IntN(rows / 4)), Seq: seq}}
		b.Apply(us)
		m.apply(us)
		if seq%256 == 0 { // few enough that it is not merged
			b.Publish()
		}
	}
	verify := func(phase string, atLeast, atMost int) {
		t.Helper()
		b.Publish()
		check(t, b)
		m.compare(t, b)
		if n := len(b.index.children); n < atLeast || n > atMost {
			t.Errorf("%s: %d inner nodes, want %d to %d", phase, n, atLeast, atMost)
		}
	}
	for _, i := range rng.Perm(rows) {
		do(wire.OpSet, i)
	}
	verify("grown", 6, 24)
	for range rows {
		do(wire.OpSet, rng.IntN(rows))
	}
	verify("moved", 6, 24)
	for _, i := range rng.Perm(rows)[:rows-500] {
		do(wire.OpDelete, i)
	}
	verify("shrunk", 1, 3)
	for i := range rows {
		do(wire.OpDelete, i)
	}
	verify("emptied", 0, 0)
	do(wire.OpSet, 1)
	verify("grown again", 1, 1)
}

// FuzzKey: keys sort as ids do, whatever prefix is left out.
func FuzzKey(f *testing.F) {
	f.Add("user:1", "user:2", "user:")
	f.Add("a", "a\x00", "")
	f.Add("aaaaaaaab", "aaaaaaaac", "aaaaaaaa")
	f.Add("other", "user:1", "user:")
	f.Fuzz(func(t *testing.T, a, b, prefix string) {
		m := members{prefix: prefix}
		if a > b {
			a, b = b, a
		}
		if m.idKey(a) > m.idKey(b) {
			t.Errorf("%q < %q, but keys %x > %x without %q", a, b, m.idKey(a), m.idKey(b), prefix)
		}
	})
}

func TestSortKeyOrdersAsScores(t *testing.T) {
	scores := []float64{-math.MaxFloat64, -1e300, -2, -1, -math.SmallestNonzeroFloat64, 0,
		math.SmallestNonzeroFloat64, 0.5, 1, 1 << 53, 1e300, math.MaxFloat64, math.Inf(1)}
	for i, a := range scores {
		if newSortKey(a, 0).value() != a {
			t.Errorf("%v came back as %v", a, newSortKey(a, 0).value())
		}
		if newSortKey(a, 0).before(sortKey{}) != 1 {
			t.Errorf("%v does not stand before the zero key", a)
		}
		for j, b := range scores {
			if got := newSortKey(a, 7).before(newSortKey(b, 7)) == 1; got != (i > j) {
				t.Errorf("%v before %v: %v", a, b, got)
			}
		}
	}
	if newSortKey(1, 3).before(newSortKey(1, 2)) != 1 || newSortKey(1, 2).before(newSortKey(1, 2)) != 0 || newSortKey(1, 2).before(newSortKey(1, 3)) != 0 {
		t.Error("of equal scores the greater key stands first")
	}
}

// TestCountBefore searches in lists of many lengths, with ties.
func TestCountBefore(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 600 {
		keys := make([]sortKey, n)
		for i := range keys {
			keys[i] = sortKey{1 + rng.Uint64N(uint64(n)), rng.Uint64N(3)}
		}
		slices.SortFunc(keys, compareSortKeys)
		for range 20 {
			a := sortKey{rng.Uint64N(uint64(n) + 2), rng.Uint64N(4)}
			want, _ := slices.BinarySearchFunc(keys, a, compareSortKeys)
			if got := countBefore(keys, a); got != want {
				t.Fatalf("%d of %d stand before %v, want %d", got, n, a, want)
			}
			if n <= nodeKeys {
				var c leaf
				copy(c.keys[:], keys)
				if got := countInNode(&c.keys, a); got != want {
					t.Fatalf("%d of a leaf's %d stand before %v, want %d", got, n, a, want)
				}
			}
		}
	}
}

// compareSortKeys sorts the greater key first; written differently from before.
func compareSortKeys(a, b sortKey) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.idKey, a.idKey))
}
