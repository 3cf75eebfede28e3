package origin

import (
	"testing"

	"rankcache"
)

func TestTotalSources(t *testing.T) {
	custom, err := ParseTotalSource("key:{<board>}:n")
	must(t, err)
	b := newBoard(t, WithTotalSource(custom))
	b.fill(t, 1, abc...)
	must(t, b.client.Set(t.Context(), "{"+string(b.id)+"}:n", 40, 0).Err())
	checkSeq(t, b, 40)
	none, err := ParseTotalSource("none")
	must(t, err)
	b.Origin = New(b.client, b.names, WithTimeout(testTimeout), WithTotalSource(none))
	checkSeq(t, b, 0)
}

// checkSeq compares the seq that each method returns.
func checkSeq(t *testing.T, b board, want uint64) {
	t.Helper()
	page, err := b.Page(t.Context(), b.id, 0, 1, rankcache.Descending)
	must(t, err)
	around, _, err := b.Around(t.Context(), b.id, "a", 0, rankcache.Descending)
	must(t, err)
	stamps, err := b.Stamps(t.Context(), []rankcache.BoardID{b.id})
	must(t, err)
	sample, err := b.Sample(t.Context(), b.id, []string{"a"}, 1)
	must(t, err)
	before, after, err := b.Scan(t.Context(), b.id, func([]rankcache.Entry) error { return nil })
	must(t, err)
	equal(t, b.total.String(), []uint64{page.Seq, around.Seq, stamps[0].Seq, sample.Seq, before, after},
		[]uint64{want, want, want, want, want, want})
	equal(t, "members", []int{page.Members, around.Members, stamps[0].Members, sample.Members}, []int{5, 5, 5, 5})
}

func TestParseTotalSource(t *testing.T) {
	for _, s := range []string{"seq", "none", "key:a<board>b"} {
		total, err := ParseTotalSource(s)
		must(t, err)
		equal(t, "total", total.String(), s)
	}
	for _, s := range []string{"SEQ", "key:", "key:x", "key:<board><board>"} {
		if _, err := ParseTotalSource(s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}
