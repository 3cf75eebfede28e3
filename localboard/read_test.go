package localboard

import (
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/wire"
)

// fiveMembers is a board of e 5, d 4, c 3, b 2, a 1.
func fiveMembers(t testing.TB) *Board {
	b := newBoard(t)
	setFive(b)
	b.Publish()
	return b
}

func setFive(b *Board) {
	for i, id := range []string{"a", "b", "c", "d", "e"} {
		b.Apply([]wire.Update{set(id, float64(i+1), uint64(i+1))})
	}
}

func idsOf(es []rankcache.Entry) (s string) {
	for _, e := range es {
		s += e.Member
	}
	return s
}

func TestPage(t *testing.T) {
	b := fiveMembers(t)
	for _, c := range []struct {
		start, limit int
		direction    rankcache.Direction
		want         string
	}{
		{0, 2, rankcache.Descending, "ed"}, {3, 9, rankcache.Descending, "ba"}, {5, 1, rankcache.Descending, ""}, {99, 1, rankcache.Descending, ""},
		{0, 2, rankcache.Ascending, "ab"}, {3, 9, rankcache.Ascending, "de"}, {5, 1, rankcache.Ascending, ""}, {2, 1, rankcache.Ascending, "c"},
		{0, 0, rankcache.Descending, ""},
	} {
		p := page(b, c.start, c.limit, c.direction)
		if idsOf(p.Entries) != c.want || p.Start != c.start || p.Seq != 5 || p.Members != 5 || p.At != topOf(b).At {
			t.Errorf("%d from %d %v: %+v, want %q", c.limit, c.start, c.direction, p, c.want)
		}
	}
}

// TestPageIsNotTheTop: a caller's append to a page does not change the top.
func TestPageIsNotTheTop(t *testing.T) {
	b := fiveMembers(t)
	_ = append(page(b, 0, 2, rankcache.Descending).Entries, rankcache.Entry{Member: "x"})
	if got := idsOf(topOf(b).Entries); got != "edcba" {
		t.Errorf("top is %q", got)
	}
}

func TestAround(t *testing.T) {
	b := fiveMembers(t)
	for _, c := range []struct {
		member    string
		n         int
		direction rankcache.Direction
		want      string
		rank      int
	}{
		{"c", 1, rankcache.Descending, "dcb", 3}, {"c", 1, rankcache.Ascending, "bcd", 3}, {"e", 2, rankcache.Descending, "edc", 1},
		{"a", 2, rankcache.Descending, "cba", 5}, {"a", 2, rankcache.Ascending, "abc", 1}, {"b", 0, rankcache.Descending, "b", 4}, {"c", 1 << 40, rankcache.Descending, "edcba", 3},
	} {
		p, rank, ok := around(b, c.member, c.n, c.direction)
		if !ok || rank != c.rank || idsOf(p.Entries) != c.want || idsOf(p.Entries[rank-1-p.Start:][:1]) != c.member {
			t.Errorf("%d around %s %v: %+v, rank %d, want %q, %d", c.n, c.member, c.direction, p, rank, c.want, c.rank)
		}
	}
	p, rank, ok := around(b, "absent", 1, rankcache.Descending)
	if ok || rank != 0 || len(p.Entries) != 0 || p.Seq != 5 || p.Members != 5 {
		t.Errorf("around an absent member: %+v, %d, %v", p, rank, ok)
	}
}

func TestReadBeforePublish(t *testing.T) {
	b := newBoard(t)
	b.Apply([]wire.Update{set("a", 1, 1)})
	for _, q := range []rankcache.Query{{}, {Limit: 5}, {Members: []string{"a"}}, {Limit: 5, Members: []string{"a"}, Around: 5, Gap: true, Mode: rankcache.Dense}} {
		if a := ask(b, q); a.Err != rankcache.ErrNotKept || len(a.Entries)+len(a.Own) > 0 || a.Stamp != (rankcache.Stamp{}) {
			t.Errorf("%+v: %+v", q, a)
		}
	}
}

// TestRoomIsUsedAgain: an answer that is asked for in its place keeps nothing of the one before.
func TestRoomIsUsedAgain(t *testing.T) {
	b := fiveMembers(t)
	r := newReads(rankcache.Query{Members: []string{"b", "x", "b"}, Around: 3, Gap: true, Mode: rankcache.Competition})
	first := &r.read(b).Own[0]
	r.qs[0] = rankcache.Query{Members: []string{"x", "b"}}
	a := r.read(b)
	want := []rankcache.Standing{{Member: "x"}, {Member: "b", Score: 2, Rank: 4}}
	if diff := gocmp.Diff(want, standingsOf(a.Own)); diff != "" || a.Members != 5 || len(a.Own[1].Neighbours) > 0 || a.Own[1].HasBetter {
		t.Errorf("(-want +got):\n%s %+v", diff, a)
	}
	if &a.Own[0] != first {
		t.Error("the answer has other room")
	}
}

func TestReadsDoNotAllocate(t *testing.T) {
	boards := NewBoards()
	b := boards.Create("board")
	setFive(b)
	boards.Open("board")
	rows, ids := newReads(rankcache.Query{Start: 1, Limit: 3}), newReads(rankcache.Query{Members: []string{"a", "e", "absent"}, Order: rankcache.Ascending})
	both := newReads(rankcache.Query{Limit: 5, Members: []string{"b"}, Around: 3, Gap: true})
	for name, read := range map[string]func(){
		"Get":       func() { boards.Get("board") },
		"rows":      func() { rows.read(b) },
		"standings": func() { ids.read(b) },
		"both":      func() { both.read(b) },
		"CurrentAt": func() { b.CurrentAt() },
	} {
		if n := testing.AllocsPerRun(100, read); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func TestMarkCurrent(t *testing.T) {
	b := newBoard(t)
	if !b.CurrentAt().IsZero() {
		t.Error("current before MarkCurrent")
	}
	now := time.Now()
	b.MarkCurrent(now)
	b.MarkCurrent(now.Add(-time.Second))
	if got := b.CurrentAt(); got != now {
		t.Errorf("current at %v, want %v", got, now)
	}
}

// A snapshot is of one moment, whatever is published while it is read.
func TestSnapshotIsOneMoment(t *testing.T) {
	b := New("1")
	if at, pieces := b.Snapshot(); at != (rankcache.Stamp{}) || len(slices.Collect(pieces)) != 0 {
		t.Errorf("an unpublished board has a snapshot of %+v", at)
	}
	var seq uint64
	give := func() {
		for i := range 3000 {
			seq++
			b.Apply([]wire.Update{{Board: "1", Member: fmt.Sprint(i * int(seq) % 5000), Op: wire.OpIncr, Score: float64(seq), Seq: seq}})
		}
		b.Publish()
	}
	give()
	want := page(b, 0, 10_000, rankcache.Descending)
	at, pieces := b.Snapshot()
	var got []rankcache.Entry
	for piece := range pieces {
		got = append(got, piece...)
		if len(got)%500 < len(piece) {
			give()
		}
	}
	if at != want.Stamp || !slices.Equal(got, want.Entries) {
		t.Errorf("snapshot of %+v with %d rows, want %+v with %d", at, len(got), want.Stamp, len(want.Entries))
	}
	for piece := range pieces {
		if len(piece) == 0 {
			t.Error("an empty piece")
		}
		break // a reader may stop early
	}
}
