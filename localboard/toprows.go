package localboard

import (
	"slices"
	"unsafe"

	"rankcache"
)

// topRows is the first rows of a view, which its top shows.
type topRows struct {
	entries []rankcache.Entry
	handles []uint32 // of the entries
	spans   []leafSpan
}

// leafSpan is a leaf whose first row is row from of the board.
type leafSpan struct {
	leaf *leaf
	from int
}

// newTopRows returns the first rows of k, at most most. What has not changed since the old view
// is copied from its topRows: few of those leaves and records are in the cache.
func newTopRows(k *ranking, m *members, most int, old *view) topRows {
	was := topRows{entries: []rankcache.Entry{}}
	if old != nil {
		was = old.topRows
	}
	n := min(k.rows, most)
	t := topRows{spans: k.leafSpans(n, len(was.spans))}
	if n == len(was.entries) && slices.Equal(t.spans, was.spans) {
		return was
	}
	t.entries, t.handles = make([]rankcache.Entry, n), make([]uint32, n)
	for i, s := range t.spans {
		end := n
		if i+1 < len(t.spans) {
			end = t.spans[i+1].from
		}
		if !t.copySpan(s, end, &was) {
			t.readSpan(m, s, end, &was)
		}
	}
	return t
}

// copySpan copies the rows from s.from to end, which are of one leaf, from was. It
// returns false if was does not have them all.
func (t *topRows) copySpan(s leafSpan, end int, was *topRows) bool {
	i := slices.IndexFunc(was.spans, func(w leafSpan) bool { return w.leaf == s.leaf })
	if i < 0 || was.spans[i].from+end-s.from > len(was.entries) {
		return false
	}
	copy(t.entries[s.from:end], was.entries[was.spans[i].from:])
	copy(t.handles[s.from:end], was.handles[was.spans[i].from:])
	return true
}

// readSpan reads the rows from s.from to end from their leaf.
func (t *topRows) readSpan(m *members, s leafSpan, end int, was *topRows) {
	for at := s.from; at < end; at++ {
		row := s.leaf.row(at - s.from)
		id, ok := was.idNear(row.handle, at)
		if !ok {
			id = m.at(row.handle).id()
		}
		t.entries[at] = rankcache.Entry{Member: id, Score: row.value()}
		t.handles[at] = row.handle
	}
}

// idNear returns the member's id if it is at most one row away from at.
func (t *topRows) idNear(handle uint32, at int) (id string, ok bool) {
	for i := max(at-1, 0); i <= at+1 && i < len(t.handles); i++ {
		if t.handles[i] == handle {
			return t.entries[i].Member, true
		}
	}
	return "", false
}

func (t *topRows) bytes() int {
	return cap(t.entries)*int(unsafe.Sizeof(rankcache.Entry{})) + cap(t.handles)*4 + cap(t.spans)*int(unsafe.Sizeof(leafSpan{}))
}
