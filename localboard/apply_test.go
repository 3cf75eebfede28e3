package localboard

import (
	"math"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/wire"
)

func TestApplyInvalidUpdates(t *testing.T) {
	b := newBoard(t)
	got := b.Apply([]wire.Update{
		set("a", math.NaN(), 1),
		set(strings.Repeat("x", maxMember+1), 1, 2),
		{Member: "i", Op: wire.OpIncr, Delta: math.Inf(1), OrderID: "1"},
		{Member: "i", Op: wire.OpIncr, Delta: math.Inf(-1), OrderID: "2"},
		set("b", math.Inf(1), 3),
	})
	if got != (rankcache.ApplyResult{Applied: 2, Stale: 3}) {
		t.Errorf("%+v", got)
	}
	b.Publish()
	if want := []rankcache.Entry{{Member: "i", Score: math.Inf(1)}, {Member: "b", Score: math.Inf(1)}}; !gocmp.Equal(whole(b, rankcache.Descending), want) {
		t.Errorf("%v", whole(b, rankcache.Descending))
	}
}

func TestReset(t *testing.T) {
	b := newBoard(t)
	b.Apply([]wire.Update{set("a", 1, 1), {Member: "a", Op: wire.OpIncr, Delta: 1, OrderID: "o"}})
	b.Publish()
	full := b.Bytes()
	b.Reset()
	if p := page(b, 0, 1, rankcache.Descending); topOf(b) != nil || !p.At.IsZero() || len(p.Entries) > 0 {
		t.Errorf("an empty board answers %+v", p)
	}
	if n := b.Bytes(); n >= full {
		t.Errorf("%d bytes when empty, %d before", n, full)
	}
	if p := b.Progress(); p != (rankcache.Progress{}) {
		t.Errorf("progress %+v", p)
	}
	n := b.Apply([]wire.Update{set("b", 1, 1), {Member: "b", Op: wire.OpIncr, Delta: 1, OrderID: "o"}})
	if n.Applied != 2 {
		t.Errorf("the old updates are still in the sets: %+v", n)
	}
	b.Publish()
	if got := whole(b, rankcache.Descending); !gocmp.Equal(got, []rankcache.Entry{{Member: "b", Score: 2}}) {
		t.Errorf("%v", got)
	}
}
