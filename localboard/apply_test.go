package localboard

import (
	"math"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/wire"
)

// An update that AcceptHoles counted as seen and that arrives after all is applied,
// unless its member has a later state.
func TestLateUpdateAfterAcceptHoles(t *testing.T) {
	b := newBoard(t)
	b.Apply([]wire.Update{set("a", 1, 1), set("b", 2, 5), set("c", 3, 6)})
	b.AcceptHoles(6)
	n := b.Apply([]wire.Update{set("a", 7, 2), set("b", 8, 3), set("d", 9, 4), set("c", 3, 6), set("a", 7, 2)})
	if n != (rankcache.ApplyResult{Applied: 2, Duplicate: 3}) {
		t.Errorf("%+v", n)
	}
	b.Publish()
	want := []rankcache.Entry{{Member: "d", Score: 9}, {Member: "a", Score: 7}, {Member: "c", Score: 3}, {Member: "b", Score: 2}}
	if diff := gocmp.Diff(want, whole(b, rankcache.Descending)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := b.Load(6, want[1:]); err != nil {
		t.Fatal(err)
	}
	if n := b.Apply([]wire.Update{set("d", 9, 4)}); n.Duplicate != 1 {
		t.Errorf("an update that a snapshot has: %+v", n)
	}
}

// An update without a seq gives a new record to a member whose tombstone was dropped.
// Updates from before the removal still count as duplicates.
func TestForgottenMemberStaysRemoved(t *testing.T) {
	b := newBoard(t)
	b.AcceptHoles(churn(b, 0, 3*compactFloor) + 10)
	until := b.forgottenSeq
	if until == 0 {
		t.Fatal("no tombstone was dropped")
	}
	b.Apply([]wire.Update{{Member: "former", Op: wire.OpIncr, Delta: 1, OrderID: "o"}})
	if got := b.Apply([]wire.Update{set("former", 9, until)}); got.Duplicate != 1 {
		t.Errorf("an update from before the removal: %+v, want a duplicate", got)
	}
	if score, _, _ := b.Score("former"); score != 1 {
		t.Errorf("score %v, want 1", score)
	}
}

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
