package localboard

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"rankcache"
	"rankcache/wire"
)

// churn lets n guests come and go one after the other and returns the last seq.
func churn(b *Board, seq uint64, n int) uint64 {
	for i := range n {
		id := fmt.Sprint("guest", i)
		b.Apply([]wire.Update{set(id, 1, seq+1), del(id, seq+2)})
		if seq += 2; i%10 == 0 && b.order != nil {
			b.Publish()
		}
	}
	return seq
}

// TestForget wants memory to stay bounded while members come and go, before a
// board is published and after.
func TestForget(t *testing.T) {
	for _, open := range []bool{false, true} {
		b := newBoard(t)
		b.Apply([]wire.Update{set("resident", 5, 1)})
		if open {
			b.Publish()
		}
		seq := churn(b, 1, 50*moveFloor)
		if most := 2*moveFloor + 20; b.members.count > most {
			t.Errorf("open %v: %d members are remembered, want at most %d", open, b.members.count, most)
		}
		if got := b.Bytes(); got > 1<<20 {
			t.Errorf("open %v: %d bytes for one member", open, got)
		}
		b.Publish()
		if top := b.Top(); top.Members != 1 || top.Entries[0] != (rankcache.Entry{Member: "resident", Score: 5}) || top.Seq != seq {
			t.Errorf("open %v: %+v", open, top)
		}
	}
}

// TestForgetNotYet keeps a removal for as long as an older update of the member
// may come: while there is a hole before it.
func TestForgetNotYet(t *testing.T) {
	b := newBoard(t)
	b.Apply([]wire.Update{del("late", 5)}) // 1 to 4 are to come
	seq := churn(b, 5, 5*moveFloor)
	if n := b.Apply([]wire.Update{set("late", 1, 4)}); n.Stale != 1 {
		t.Errorf("an update older than the removal: %+v", n)
	}
	b.Apply([]wire.Update{set("x", 1, 1), set("x", 1, 2), set("x", 1, 3)})
	churn(b, seq, 15*moveFloor)
	if _, r := b.members.find("late"); r != nil || b.members.count > 3*moveFloor {
		t.Errorf("%d members are still remembered when the holes are closed", b.members.count)
	}
}

// TestOldViewOutlivesMove reads a view whose storage was left behind.
func TestOldViewOutlivesMove(t *testing.T) {
	b := newBoard(t)
	b.Apply([]wire.Update{set("a", 1, 1), set("b", 2, 2)})
	b.Publish()
	v := b.view.Load()
	b.Apply([]wire.Update{set("a", 7, 3), del("b", 4)})
	b.move()
	b.Publish()
	rows := []rankcache.Standing{{Member: "a"}, {Member: "b"}}
	v.lookup(rows, false)
	if v.overwritten.Load() != nil {
		t.Error("the old storage was written to")
	}
	if !v.rank(rows, rankcache.Descending) {
		t.Error("a hash led to another member")
	}
	if rows[0].Score != 1 || rows[0].Rank != 2 || rows[1].Rank != 1 {
		t.Errorf("old view: %+v", rows)
	}
	if now, _ := b.Standings(nil, []string{"a", "b"}, rankcache.Descending); now[0].Rank != 1 || now[1].Rank != 0 {
		t.Errorf("new view: %+v", now)
	}
}

// TestOldViewBesideNewMembers looks members up that came after the view, through
// the table that both share: their records may lie where the view has nothing.
func TestOldViewBesideNewMembers(t *testing.T) {
	b := newBoard(t)
	b.Apply([]wire.Update{set("a", 1, 1)})
	_, r := b.members.find("a")
	table := newTable(10_000)
	r.slot = table.put(b.members.tag("a"), 0, b.members.published(r))
	b.members.table = table
	b.Publish()
	v := b.view.Load()
	var us []wire.Update
	for i := range 9000 {
		us = append(us, set(fmt.Sprint(7919*i%9001, "late"), 1, uint64(2+i))) // no common prefix: nothing moves
	}
	b.Apply(us)
	if v.table != b.members.table {
		t.Fatal("the table is not shared")
	}
	for _, u := range us {
		if _, r := v.find(u.Member); r != nil {
			t.Fatalf("the view knows %q", u.Member)
		}
	}
}

// TestGrowthChoosesPrefix opens a board when it is small; the ids that come
// later have a beginning in common, which their keys are to leave out.
func TestGrowthChoosesPrefix(t *testing.T) {
	b, m := newBoard(t), newModel()
	b.Publish()
	s := &script{Rand: rand.New(rand.NewPCG(1, 1)), members: 20 * moveFloor, scores: gifts}
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

// FuzzKey wants keys to sort as ids do, whatever prefix is left out.
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
		if m.key(a) > m.key(b) {
			t.Errorf("%q < %q, but keys %x > %x without %q", a, b, m.key(a), m.key(b), prefix)
		}
	})
}

func TestRecords(t *testing.T) {
	m := newMembers(New("x").members.seed, 0)
	var ids []string
	for n := range 300 {
		ids = append(ids, string(make([]byte, n)), fmt.Sprintf("%0*d", n+1, 1))
	}
	for _, n := range []int{wordBytes*firstBlockWords - idOffset, maxMember - 1, maxMember} {
		ids = append(ids, string(make([]byte, n)))
	}
	for _, id := range ids {
		if !m.fits(id) {
			t.Fatalf("id of %d bytes does not fit", len(id))
		}
		m.add(id)
	}
	if m.fits(string(make([]byte, maxMember+1))) {
		t.Error("an id of 64 KiB fits")
	}
	i := 0
	for h, r := range m.all {
		if r.name() != ids[i] || h >= m.limit || !math.IsNaN(m.published(r)) {
			t.Fatalf("record %d is %q, want %q", i, r.name(), ids[i])
		}
		if found, _ := m.find(ids[i]); found != h {
			t.Fatalf("record %d is not found", i)
		}
		i++
	}
	if i != len(ids) {
		t.Errorf("%d records, want %d", i, len(ids))
	}
}
