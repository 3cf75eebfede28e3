package localboard

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// churn adds and removes n guests one after the other and returns the last seq.
func churn(b *Board, seq uint64, n int) uint64 {
	for i := range n {
		id := fmt.Sprint("guest", i)
		b.Apply([]wire.Update{set(id, 1, seq+1), del(id, seq+2)})
		if seq += 2; i%10 == 0 && b.index != nil {
			b.Publish()
		}
	}
	return seq
}

// TestTombstonesAreBounded: memory stays bounded while members are added and removed,
// before a board is published and after.
func TestTombstonesAreBounded(t *testing.T) {
	for _, open := range []bool{false, true} {
		b := newBoard(t)
		b.Apply([]wire.Update{set("resident", 5, 1)})
		if open {
			b.Publish()
		}
		seq := churn(b, 1, testkit.Sized(10, 50)*compactFloor)
		if limit := 2*compactFloor + 20; b.members.count > limit {
			t.Errorf("open %v: %d members have a record, want at most %d", open, b.members.count, limit)
		}
		if got := b.Bytes(); got > 1<<20 {
			t.Errorf("open %v: %d bytes for one member", open, got)
		}
		b.Publish()
		if top := topOf(b); top.Members != 1 || top.Entries[0] != (rankcache.Entry{Member: "resident", Score: 5}) || top.Seq != seq {
			t.Errorf("open %v: %+v", open, top)
		}
	}
}

// TestTombstonesBehindAHoleStay: a tombstone stays while an older update of the member
// may still arrive.
func TestTombstonesBehindAHoleStay(t *testing.T) {
	b := newBoard(t)
	b.Apply([]wire.Update{del("late", 5)}) // 1 to 4 are missing
	seq := churn(b, 5, 5*compactFloor)
	if n := b.Apply([]wire.Update{set("late", 1, 4)}); n.Stale != 1 {
		t.Errorf("an update older than the removal: %+v", n)
	}
	b.Apply([]wire.Update{set("x", 1, 1), set("x", 1, 2), set("x", 1, 3)})
	churn(b, seq, 15*compactFloor)
	if b.members.find("late").record != nil || b.members.count > 3*compactFloor {
		t.Errorf("%d members still have a record when the holes are filled", b.members.count)
	}
}

// TestOldViewOutlivesCompaction reads a view of the storage before a compaction.
func TestOldViewOutlivesCompaction(t *testing.T) {
	b := newBoard(t)
	b.Apply([]wire.Update{set("a", 1, 1), set("b", 2, 2)})
	b.Publish()
	v := b.view.Load()
	b.Apply([]wire.Update{set("a", 7, 3), del("b", 4)})
	compact(&b.writerState)
	b.Publish()
	rows := []rankcache.Own{{Standing: rankcache.Standing{Member: "a"}}, {Standing: rankcache.Standing{Member: "b"}}}
	v.lookup(rows, false)
	if v.overwritten.Load() != nil {
		t.Error("the old storage was written to")
	}
	if !v.rank(rows, rankcache.Descending) {
		t.Error("a tag led to another member")
	}
	if rows[0].Score != 1 || rows[0].Rank != 2 || rows[1].Rank != 1 {
		t.Errorf("old view: %+v", rows)
	}
	if now, _ := standings(b, []string{"a", "b"}, rankcache.Descending); now[0].Rank != 1 || now[1].Rank != 0 {
		t.Errorf("new view: %+v", now)
	}
}

// TestOldViewBesideNewMembers looks up members that are newer than the view, in the
// table that both share: their records may be in blocks that the view does not have.
func TestOldViewBesideNewMembers(t *testing.T) {
	b := newBoard(t)
	b.Publish()
	b.members.table = newTable(10_000)
	b.Apply([]wire.Update{set("a", 1, 1)})
	b.Publish()
	v := b.view.Load()
	var us []wire.Update
	for i := range 9000 {
		us = append(us, set(fmt.Sprint(7919*i%9001, "late"), 1, uint64(2+i))) // no common prefix, so no compaction
	}
	b.Apply(us)
	if v.table != b.members.table {
		t.Fatal("the table is not shared")
	}
	for _, u := range us {
		if v.find(u.Member).record != nil {
			t.Fatalf("the view finds %q", u.Member)
		}
	}
}

// TestPrefixIsChosenAgain opens a board when it is empty; the ids that are added later
// have a common prefix, which their keys then leave out.
func TestPrefixIsChosenAgain(t *testing.T) {
	b, m := newBoard(t), newModel()
	b.Publish()
	s := &generator{Rand: rand.New(rand.NewPCG(1, 1)), members: 20 * compactFloor, scores: smallScores}
	for range 100 {
		us := s.batch(200, true)
		b.Apply(us)
		m.apply(us)
		b.Publish()
	}
	if b.members.prefix != "user:" {
		t.Errorf("prefix %q", b.members.prefix)
	}
	m.compare(t, b)
}
