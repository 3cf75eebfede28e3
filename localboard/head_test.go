package localboard

import (
	"sync"
	"testing"

	"rankcache"
	"rankcache/wire"
)

// TestReadersShareTheTop: whoever makes it, all get the same.
func TestReadersShareTheTop(t *testing.T) {
	b := New("b")
	for seq := range uint64(200) {
		b.Apply([]wire.Update{set(string(rune('A'+seq)), float64(seq), seq+1)})
	}
	b.Publish()
	heads := make([]rankcache.Answer, 8)
	var all sync.WaitGroup
	for i := range heads {
		all.Go(func() { heads[i] = page(b, 0, 200, rankcache.Descending) })
	}
	all.Wait()
	first := &heads[0].Entries[0]
	for _, head := range heads {
		if &head.Entries[0] != first || len(head.Entries) != 200 || head.Kept != heads[0].Kept {
			t.Fatalf("heads %p and %p, of %d rows", &head.Entries[0], first, len(head.Entries))
		}
	}
	if page := page(b, 0, 10, rankcache.Descending); &page.Entries[0] != first || page.Kept != heads[0].Kept {
		t.Error("a page has other rows")
	}
	if _, a := standings(b, []string{"A"}, rankcache.Descending); a.Kept != heads[0].Kept {
		t.Error("a standing is of another head")
	}
}
