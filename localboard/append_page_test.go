package localboard

import (
	"slices"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/wire"
)

// TestAppendPage: the rows of Page, in the caller's room, and no top is made for them.
func TestAppendPage(t *testing.T) {
	b := New("b")
	if p := b.AppendPage(nil, 0, 10, rankcache.Descending); !p.At.IsZero() || len(p.Entries) != 0 || b.Stamp() != (rankcache.Stamp{}) {
		t.Errorf("before the first publication: %+v, stamp %+v", p, b.Stamp())
	}
	for seq := range uint64(200) {
		b.Apply([]wire.Update{set(string(rune('A'+seq)), float64(seq%50), seq+1)})
	}
	b.Publish()
	room := make([]rankcache.Entry, 1, 1024)
	for _, order := range []rankcache.Direction{rankcache.Descending, rankcache.Ascending} {
		for _, r := range [][2]int{{0, 50}, {20, 30}, {190, 50}, {200, 5}, {0, 500}, {-1, 5}, {3, 0}} {
			got := b.AppendPage(room, r[0], r[1], order)
			if b.view.Load().made.Load() != nil {
				t.Fatalf("rows %v: a top was made", r)
			}
			if &got.Entries[0] != &room[0] {
				t.Errorf("rows %v are not in the room", r)
			}
			got.Entries = slices.Clone(got.Entries[1:])
			want := rankcache.Page{Stamp: b.Stamp(), Entries: pageOf(b, r[0], r[1], order)}
			if diff := gocmp.Diff(want.Entries, got.Entries); diff != "" || got.Stamp != want.Stamp || got.Start != r[0] {
				t.Errorf("rows %v (-want +got):\n%s %+v", r, diff, got.Stamp)
			}
		}
	}
	if n := testing.AllocsPerRun(100, func() { b.AppendPage(room, 0, 50, rankcache.Descending) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// pageOf reads rows from all of the board.
func pageOf(b *Board, start, limit int, order rankcache.Direction) []rankcache.Entry {
	all := []rankcache.Entry{}
	_, pieces := b.Snapshot()
	for piece := range pieces {
		all = append(all, piece...)
	}
	if order == rankcache.Ascending {
		slices.Reverse(all)
	}
	if start < 0 || start >= len(all) {
		return []rankcache.Entry{}
	}
	return all[start:min(start+limit, len(all))]
}

// TestReadersShareTheTop: whoever makes it, all get the same.
func TestReadersShareTheTop(t *testing.T) {
	b := New("b")
	for seq := range uint64(200) {
		b.Apply([]wire.Update{set(string(rune('A'+seq)), float64(seq), seq+1)})
	}
	b.Publish()
	tops := make([]*rankcache.Top, 8)
	var all sync.WaitGroup
	for i := range tops {
		all.Go(func() { tops[i] = b.Top() })
	}
	all.Wait()
	for _, top := range tops {
		if top != tops[0] || len(top.Entries) != 200 {
			t.Fatalf("tops %p and %p, of %d rows", tops[0], top, len(top.Entries))
		}
	}
	if page := b.Page(0, 10, rankcache.Descending); &page.Entries[0] != &tops[0].Entries[0] {
		t.Error("a page has other rows")
	}
	if _, top := b.Standings(nil, []string{"A"}, rankcache.Descending); top != tops[0] {
		t.Error("a standing has another head")
	}
}
