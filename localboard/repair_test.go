package localboard

import (
	"math/rand/v2"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/wire"
)

func TestRepair(t *testing.T) {
	for _, open := range []bool{false, true} {
		b := newBoard(t)
		b.Apply([]wire.Update{set("wrong", 1, 1), set("extra", 2, 2), set("right", 3, 3), set("newer", 9, 6), del("removed", 7)})
		if open {
			b.Publish()
		}
		for member, want := range map[string]bool{"wrong": true, "right": false, "newer": false, "removed": false, "missing": true} {
			if got := b.Repair(member, 3, true, 5); got != want {
				t.Errorf("%s repaired: %t", member, got)
			}
		}
		if !b.Repair("extra", 0, false, 5) || b.Repair("nobody", 0, false, 5) {
			t.Error("want the extra member removed, and nothing done about one that is on neither side")
		}
		b.Publish()
		want := []rankcache.Entry{{Member: "newer", Score: 9}, {Member: "wrong", Score: 3}, {Member: "right", Score: 3}, {Member: "missing", Score: 3}}
		if diff := gocmp.Diff(want, whole(b, rankcache.Descending)); diff != "" {
			t.Errorf("open %v (-want +got):\n%s", open, diff)
		}
		// What the repair knew already changes nothing when it comes.
		if n := b.Apply([]wire.Update{set("wrong", 2, 4), set("missing", 8, 5)}); n.Stale != 1 || n.Applied != 1 {
			t.Errorf("updates up to the repair: %+v", n)
		}
		b.Apply([]wire.Update{set("extra", 4, 8)})
		if score, _, ok := b.Score("extra"); !ok || score != 4 {
			t.Error("the removed member can't come back")
		}
	}
}

// A member that was removed and forgotten looks like one that was never there.
func TestRepairBringsNobodyBack(t *testing.T) {
	b := newBoard(t)
	seq := churn(b, 0, 5*moveFloor)
	if b.forgotten == 0 {
		t.Fatal("nobody was forgotten")
	}
	if b.Repair("somebody", 1, true, b.forgotten-1) {
		t.Error("repaired with a state from before a removal that is forgotten")
	}
	if _, known, ok := b.Score("somebody"); ok || known != b.forgotten {
		t.Errorf("unknown member's seq is %d, want %d", known, b.forgotten)
	}
	if !b.Repair("somebody", 1, true, seq) {
		t.Error("not repaired with a newer state")
	}
}

// Repairs with the origin's own state, at any time, never make a board wrong.
func TestRepairAgreesWithUpdates(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	b, origin := newBoard(t), newModel()
	s := &script{Rand: rnd, members: 60, scores: gifts}
	for range 200 {
		us := s.batch(10, true)
		origin.apply(us)
		id := s.id()
		is := origin.members[id]
		b.Apply(us[:5])
		b.Repair(id, is.score, is.on, s.seq) // ahead of the log
		b.Apply(us[5:])
		b.Publish()
		if diff := gocmp.Diff(origin.rows(), whole(b, rankcache.Descending)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
	check(t, b)
}

// An update that was counted as seen because the log seemed to have lost it, and
// comes after all, is applied unless its member is further.
func TestLateUpdateAfterSettle(t *testing.T) {
	b := newBoard(t)
	b.Apply([]wire.Update{set("a", 1, 1), set("b", 2, 5), set("c", 3, 6)})
	b.Settle(6)
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

// An update without a seq makes a forgotten member known again, but not the
// updates from before its removal news.
func TestForgottenStaysRemoved(t *testing.T) {
	b := newBoard(t)
	b.Settle(churn(b, 0, 3*moveFloor) + 10)
	until := b.forgotten
	if until == 0 {
		t.Fatal("nobody was forgotten")
	}
	b.Apply([]wire.Update{{Member: "somebody", Op: wire.OpIncr, Delta: 1, OrderID: "o"}})
	if got := b.Apply([]wire.Update{set("somebody", 9, until)}); got.Duplicate != 1 {
		t.Errorf("an update from before the removal: %+v, want a duplicate", got)
	}
	if score, _, _ := b.Score("somebody"); score != 1 {
		t.Errorf("score %v, want 1", score)
	}
}
