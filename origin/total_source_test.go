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
	page := b.ask(rankcache.Query{Limit: 1})
	must(t, page.Err)
	around := b.ask(rankcache.Query{Members: []string{"a"}, Around: 1})
	must(t, around.Err)
	stamps, err := b.Stamps(t.Context(), []rankcache.BoardID{b.id})
	must(t, err)
	sample, err := b.Sample(t.Context(), b.id, []string{"a"}, 1)
	must(t, err)
	before, after, err := b.Scan(t.Context(), b.id, func([]rankcache.Entry) error { return nil })
	must(t, err)
	equal(t, b.reader.total.String(), []uint64{page.Seq, around.Seq, stamps[0].Seq, sample.Seq, before.Seq, after.Seq},
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
	stamps, err := b.Stamps(t.Context(), []rankcache.BoardID{b.id})
	must(t, err)
	equal(t, "adopting", stamps[0].Adopting, true)
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
		plain := b.ask(rankcache.Query{Members: []string{"a"}})
		must(t, plain.Err)
		ranked := b.ask(rankcache.Query{Mode: rankcache.Competition, Members: []string{"a"}})
		must(t, ranked.Err)
		want := life >= wire.LifeClosed
		equal(t, fmt.Sprint("closed at life ", life), []bool{plain.Life >= rankcache.LifeClosed, ranked.Life >= rankcache.LifeClosed}, []bool{want, want})
	}
}

// reads are the methods that return a state.
func (b board) reads() map[string]func(context.Context) (rankcache.State, error) {
	return map[string]func(context.Context) (rankcache.State, error){
		"page": func(ctx context.Context) (rankcache.State, error) {
			a := b.ask(rankcache.Query{Limit: 1})
			return a.State, a.Err
		},
		"standings": func(ctx context.Context) (rankcache.State, error) {
			a := b.ask(rankcache.Query{Members: []string{"a"}})
			return a.State, a.Err
		},
		"around": func(ctx context.Context) (rankcache.State, error) {
			a := b.ask(rankcache.Query{Members: []string{"a"}, Around: 3})
			return a.State, a.Err
		},
		"tops": func(ctx context.Context) (rankcache.State, error) {
			a := b.tops([]rankcache.BoardID{b.id, b.id}, 1)[0]
			return a.State, a.Err
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
