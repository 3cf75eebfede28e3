package origin

import (
	"context"
	"fmt"
	"testing"

	"rankcache"
	"rankcache/wire"
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
	b.Origin = New(b.client, b.names(), WithTimeout(testTimeout), WithTotalSource(none))
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
	equal(t, b.pageReader.total.String(), []uint64{page.Seq, around.Seq, stamps[0].Seq, sample.Seq, before.Seq, after.Seq},
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

// Every method returns the state of the meta, and no sum while the board is adopted.
func TestState(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	want := b.state(917)
	for name, read := range b.reads() {
		state, err := read(t.Context())
		must(t, err)
		equal(t, name, state, want)
	}
	value, err := b.client.Get(t.Context(), b.names().MetaKey(b.id)).Result()
	must(t, err)
	meta, err := wire.ParseMeta(value)
	must(t, err)
	meta.Adopting = true
	must(t, b.client.Set(t.Context(), b.names().MetaKey(b.id), wire.AppendMeta(nil, &meta), 0).Err())
	want.Sum, want.HasSum = 0, false
	for name, read := range b.reads() {
		state, err := read(t.Context())
		must(t, err)
		equal(t, "adopting: "+name, state, want)
	}
}

// Standings tell whether the board is closed, in the same instant.
func TestClosed(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	value, err := b.client.Get(t.Context(), b.names().MetaKey(b.id)).Result()
	must(t, err)
	meta, err := wire.ParseMeta(value)
	must(t, err)
	for life := wire.LifeOpen; life <= wire.LifeFinal; life++ {
		meta.Life = life
		must(t, b.client.Set(t.Context(), b.names().MetaKey(b.id), wire.AppendMeta(nil, &meta), 0).Err())
		_, plain, err := b.Standings(t.Context(), b.id, []string{"a"}, rankcache.Descending)
		must(t, err)
		_, _, ranked, err := b.RankedStandings(t.Context(), rankcache.PageQuery{Board: b.id, Mode: rankcache.Competition}, []string{"a"})
		must(t, err)
		want := life >= wire.LifeClosed
		equal(t, fmt.Sprint("closed at life ", life), []bool{plain.Life >= rankcache.LifeClosed, ranked.Life >= rankcache.LifeClosed}, []bool{want, want})
	}
}

// reads are the methods that return a state.
func (b board) reads() map[string]func(context.Context) (rankcache.State, error) {
	return map[string]func(context.Context) (rankcache.State, error){
		"page": func(ctx context.Context) (rankcache.State, error) {
			page, err := b.Page(ctx, b.id, 0, 1, rankcache.Descending)
			return page.State, err
		},
		"standings": func(ctx context.Context) (rankcache.State, error) {
			_, stamp, err := b.Standings(ctx, b.id, []string{"a"}, rankcache.Descending)
			return stamp.State, err
		},
		"around": func(ctx context.Context) (rankcache.State, error) {
			page, _, err := b.Around(ctx, b.id, "a", 1, rankcache.Descending)
			return page.State, err
		},
		"tops": func(ctx context.Context) (rankcache.State, error) {
			tops, err := b.Tops(ctx, []rankcache.BoardID{b.id}, 1)
			if err != nil {
				return rankcache.State{}, err
			}
			return tops[0].State, nil
		},
		"stamps": func(ctx context.Context) (rankcache.State, error) {
			stamps, err := b.Stamps(ctx, []rankcache.BoardID{b.id})
			return stamps[0].State, err
		},
		"sample": func(ctx context.Context) (rankcache.State, error) {
			sample, err := b.Sample(ctx, b.id, nil, 0)
			return sample.State, err
		},
		"scan": func(ctx context.Context) (rankcache.State, error) {
			before, _, err := b.Scan(ctx, b.id, func([]rankcache.Entry) error { return nil })
			return before.State, err
		},
	}
}
