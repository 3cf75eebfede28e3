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

// check fails the test if the board's parts contradict each other or their own
// rules.
func check(t testing.TB, b *Board) {
	t.Helper()
	checkMembers(t, b)
	if b.order == nil {
		return
	}
	checkSpine(t, b)
	checkRows(t, b)
	checkSpares(t, b)
	if v := b.view.Load(); !b.moved {
		checkView(t, b, v)
	}
}

func checkMembers(t testing.TB, b *Board) {
	t.Helper()
	count, live := 0, 0
	for h, r := range b.members.all {
		count++
		live += on(b.score(r))
		if found, _ := b.members.find(r.name()); found != h {
			t.Errorf("member %q has handle %d, the table says %d", r.name(), h, found)
		}
		if n := r.change.Load(); n > 0 && b.changes[n-1].handle != h {
			t.Errorf("member %q: change %d is that of handle %d, want %d", r.name(), n, b.changes[n-1].handle, h)
		}
	}
	if count != b.members.count || count != b.members.table.used || live != b.live {
		t.Errorf("%d members, %d of them on the board; counted %d (table %d) and %d",
			count, live, b.members.count, b.members.table.used, b.live)
	}
}

func checkSpine(t testing.TB, b *Board) {
	t.Helper()
	rows := 0
	for i, s := range b.order.shelves {
		checkShelf(t, s)
		rows += s.rows()
		if int(b.order.counts[i]) != s.rows() || b.order.heads[i] != s.head() {
			t.Errorf("shelf %d has %d rows from %v, the spine says %d from %v", i, s.rows(), s.head(), b.order.counts[i], b.order.heads[i])
		}
	}
	if n := len(b.order.shelves); n != len(b.order.heads) || n != len(b.order.counts) || rows != b.order.rows {
		t.Errorf("%d shelves, %d heads, %d counts; %d rows, counted %d", n, len(b.order.heads), len(b.order.counts), rows, b.order.rows)
	}
}

func checkShelf(t testing.TB, s *shelf) {
	t.Helper()
	if s.n == 0 || s.n > shelfChunks {
		t.Fatalf("a shelf has %d chunks", s.n)
	}
	rows := 0
	for i, c := range s.chunks[:s.n] {
		if c.n == 0 || c.n > chunkRows || int(s.starts[i]) != rows || s.heads[i] != c.head() {
			t.Errorf("chunk %d has %d rows from %v, %d before it; the shelf says from %v, %d", i, c.n, c.head(), rows, s.heads[i], s.starts[i])
		}
		if slices.ContainsFunc(c.marks[c.n:], func(m mark) bool { return m != mark{} }) {
			t.Errorf("chunk %d has marks behind its %d rows", i, c.n)
		}
		rows += c.n
	}
	if s.rows() != rows {
		t.Errorf("a shelf says %d rows, counted %d", s.rows(), rows)
	}
	if slices.ContainsFunc(s.heads[s.n:], func(m mark) bool { return m != mark{} }) || slices.ContainsFunc(s.chunks[s.n:], func(c *chunk) bool { return c != nil }) {
		t.Errorf("a shelf has something behind its %d chunks", s.n)
	}
}

// checkRows wants the rows sorted and one for each published member.
func checkRows(t testing.TB, b *Board) {
	t.Helper()
	m, published := &b.members, 0
	for _, r := range m.all {
		published += on(m.published(r))
	}
	if published != b.order.rows {
		t.Errorf("%d rows for %d published members", b.order.rows, published)
	}
	var last *row
	for r := range b.order.all {
		rec := m.at(r.handle)
		if r.value() != m.published(rec) || r.key != m.key(rec.name()) {
			t.Errorf("row of %q is %v, its score is %v and its key %d", rec.name(), r, m.published(rec), m.key(rec.name()))
		}
		if last != nil && !m.before(*last, r) {
			t.Errorf("row %v stands before %v", *last, r)
		}
		last = &r
	}
}

// checkSpares wants nothing among the spares that the writer or a reader may be in.
func checkSpares(t testing.TB, b *Board) {
	t.Helper()
	s, shelves, chunks := b.order.spares, map[*shelf]bool{}, map[*chunk]bool{}
	inUse := []spine{b.order.spine, b.view.Load().spine}
	for _, l := range s.lots {
		shelves, chunks = add(shelves, l.shelves), add(chunks, l.chunks)
	}
	for _, spine := range inUse {
		shelves = add(shelves, spine.shelves)
		for c := range spine.chunks {
			chunks[c] = true
		}
	}
	if !b.view.Load().holds.idle() {
		t.Error("a reader that has gone is counted")
	}
	if slices.ContainsFunc(s.shelves, func(f *shelf) bool { return shelves[f] }) || slices.ContainsFunc(s.chunks, func(c *chunk) bool { return chunks[c] }) {
		t.Error("something that may be read is among the spares")
	}
	if len(add(map[*chunk]bool{}, s.chunks)) != len(s.chunks) || len(add(map[*shelf]bool{}, s.shelves)) != len(s.shelves) {
		t.Error("something is twice among the spares")
	}
}

func add[T any](to map[*T]bool, all []*T) map[*T]bool {
	for _, one := range all {
		to[one] = true
	}
	return to
}

func checkView(t testing.TB, b *Board, v *view) {
	t.Helper()
	if v.rows != b.order.rows || v.top.Members != v.rows || len(v.top.Entries) != min(v.rows, rankcache.MaxTop) {
		t.Errorf("view of %d rows, order of %d, top of %d, %d entries", v.rows, b.order.rows, v.top.Members, len(v.top.Entries))
	}
	i := 0
	for r := range b.order.all {
		if got := v.place(&v.members, r); got != i {
			t.Errorf("row %d stands at %d in the view", i, got)
		}
		e := rankcache.Entry{Member: v.at(r.handle).name(), Score: r.value()}
		if i < len(v.top.Entries) && v.top.Entries[i] != e {
			t.Errorf("row %d is %v, in the top %v", i, e, v.top.Entries[i])
		}
		i++
	}
}

// ordered maps doubles to integers that sort alike.
func ordered(score float64) int64 {
	n := int64(math.Float64bits(score + 0))
	return n ^ int64(uint64(n>>63)>>1)
}
