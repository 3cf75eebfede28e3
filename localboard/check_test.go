package localboard

import (
	"math"
	"slices"
	"testing"

	"rankcache"
)

// newBoard returns an empty board whose structure is checked when the test ends.
func newBoard(t testing.TB) *Board {
	b := New("board")
	t.Cleanup(func() { check(t, b) })
	return b
}

// check fails the test if an invariant of the board or between its parts is broken.
func check(t testing.TB, b *Board) {
	t.Helper()
	checkMembers(t, b)
	if b.index == nil {
		return
	}
	checkRoot(t, b)
	checkRows(t, b)
	if v := b.view.Load(); !b.freshStorage {
		checkView(t, b, v)
	}
}

func checkMembers(t testing.TB, b *Board) {
	t.Helper()
	count, live := 0, 0
	for h, r := range b.members.all {
		count++
		m := b.members.find(r.id())
		if m.handle != h {
			t.Errorf("member %q has handle %d, in the table %d", r.id(), h, m.handle)
		}
		live += present(b.score(m))
		if n := r.changeNo.Load(); n > 0 && b.changes[n-1].handle != h {
			t.Errorf("member %q: change %d is that of handle %d, want %d", r.id(), n, b.changes[n-1].handle, h)
		}
	}
	if count != b.members.count || count != b.members.table.used || live != b.live {
		t.Errorf("%d members, %d of them on the board; counted %d (table %d) and %d",
			count, live, b.members.count, b.members.table.used, b.live)
	}
}

func checkRoot(t testing.TB, b *Board) {
	t.Helper()
	rows := 0
	for i, in := range b.index.children {
		checkInner(t, in)
		rows += in.rows()
		if int(b.index.counts[i]) != in.rows() || b.index.keys[i] != in.firstKey() {
			t.Errorf("inner node %d has %d rows from %v, in the root %d from %v", i, in.rows(), in.firstKey(), b.index.counts[i], b.index.keys[i])
		}
	}
	if n := len(b.index.children); n != len(b.index.keys) || n != len(b.index.counts) || rows != b.index.rows {
		t.Errorf("%d inner nodes, %d keys, %d counts; %d rows, counted %d", n, len(b.index.keys), len(b.index.counts), rows, b.index.rows)
	}
}

func checkInner(t testing.TB, in *innerNode) {
	t.Helper()
	if in.n == 0 || in.n > maxChildren {
		t.Fatalf("an inner node has %d leaves", in.n)
	}
	rows := 0
	for i, l := range in.leaves[:in.n] {
		if l.n == 0 || l.n > maxLeafRows || int(in.starts[i]) != rows || in.keys[i] != l.firstKey() {
			t.Errorf("leaf %d has %d rows from %v, %d before it; in its inner node from %v, %d", i, l.n, l.firstKey(), rows, in.keys[i], in.starts[i])
		}
		if slices.ContainsFunc(l.keys[l.n:], func(k sortKey) bool { return k != sortKey{} }) {
			t.Errorf("leaf %d has keys behind its %d rows", i, l.n)
		}
		rows += l.n
	}
	if in.rows() != rows {
		t.Errorf("an inner node has %d rows, counted %d", in.rows(), rows)
	}
	if slices.ContainsFunc(in.keys[in.n:], func(k sortKey) bool { return k != sortKey{} }) || slices.ContainsFunc(in.leaves[in.n:], func(l *leaf) bool { return l != nil }) {
		t.Errorf("an inner node has something behind its %d leaves", in.n)
	}
}

// checkRows wants the rows sorted and one for each published member.
func checkRows(t testing.TB, b *Board) {
	t.Helper()
	m, published := &b.members, 0
	for h, r := range m.all {
		published += present(m.of(h, r).published())
	}
	if published != b.index.rows {
		t.Errorf("%d rows for %d published members", b.index.rows, published)
	}
	var last *row
	for r := range b.index.all {
		rec := m.of(r.handle, m.at(r.handle))
		if r.value() != rec.published() || r.idKey != m.idKey(rec.id()) {
			t.Errorf("row of %q is %v, its score is %v and its key %d", rec.id(), r, rec.published(), m.idKey(rec.id()))
		}
		if last != nil && !m.before(*last, r) {
			t.Errorf("row %v stands before %v", *last, r)
		}
		last = &r
	}
}

// isTopOf reports whether the top of a board may have n rows.
func isTopOf(n, members int) bool {
	return min(members, shortTop) <= n && n <= min(members, rankcache.MaxTop)
}

func checkView(t testing.TB, b *Board, v *view) {
	t.Helper()
	top := v.top()
	if v.rows != b.index.rows || !isTopOf(len(top), v.rows) {
		t.Errorf("view of %d rows, index of %d, top of %d", v.rows, b.index.rows, len(top))
	}
	i := 0
	for r := range b.index.all {
		if got := v.rowsBefore(&v.members, r); got != i {
			t.Errorf("row %d stands at %d in the view", i, got)
		}
		e := rankcache.Entry{Member: v.at(r.handle).id(), Score: r.value()}
		if i < len(top) && top[i] != e {
			t.Errorf("row %d is %v, in the top %v", i, e, top[i])
		}
		i++
	}
}

// ordered maps doubles to integers that sort alike.
func ordered(score float64) int64 {
	n := int64(math.Float64bits(score + 0))
	return n ^ int64(uint64(n>>63)>>1)
}
