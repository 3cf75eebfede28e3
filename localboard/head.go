package localboard

import (
	"slices"

	"rankcache"
)

// head is the first rows of a view, which its top shows.
type head struct {
	entries []rankcache.Entry
	handles []uint32 // of the entries
	parts   []part
}

// part is a chunk that rows of a head come from, the first of which is row from.
type part struct {
	chunk *chunk
	from  int
}

// newHead returns the head of v. What is in the old view's is taken from there: of
// the chunks and records that were not touched since, few are in the cache.
func (v *view) newHead(old *view) head {
	was := head{entries: []rankcache.Entry{}}
	if old != nil {
		was = old.head
	}
	n := min(v.rows, rankcache.MaxTop)
	h := head{parts: v.parts(n, len(was.parts))}
	if n == len(was.entries) && slices.Equal(h.parts, was.parts) {
		return was
	}
	h.entries, h.handles = make([]rankcache.Entry, n), make([]uint32, n)
	for i, p := range h.parts {
		end := n
		if i+1 < len(h.parts) {
			end = h.parts[i+1].from
		}
		if !h.takeOver(p, end, &was) {
			h.read(&v.members, p, end, &was)
		}
	}
	return h
}

// parts returns the chunks of the first n rows. It looks at none of them.
func (k *ranking) parts(n, guess int) []part {
	parts, from := make([]part, 0, guess), 0
	for _, s := range k.shelves {
		for i := range s.n {
			if from >= n {
				return parts
			}
			parts = append(parts, part{s.chunks[i], from})
			from += s.rowsOf(i)
		}
	}
	return parts
}

// takeOver fills in the rows from p.from to end, of one chunk, if was has them all.
func (h *head) takeOver(p part, end int, was *head) bool {
	i := slices.IndexFunc(was.parts, func(w part) bool { return w.chunk == p.chunk })
	if i < 0 || was.parts[i].from+end-p.from > len(was.entries) {
		return false
	}
	copy(h.entries[p.from:end], was.entries[was.parts[i].from:])
	copy(h.handles[p.from:end], was.handles[was.parts[i].from:])
	return true
}

// read fills in the rows from p.from to end, of one chunk, by looking at it.
func (h *head) read(m *members, p part, end int, was *head) {
	for at := p.from; at < end; at++ {
		row := p.chunk.row(at - p.from)
		name, ok := was.name(row.handle, at)
		if !ok {
			name = m.at(row.handle).name()
		}
		h.entries[at] = rankcache.Entry{Member: name, Score: row.value()}
		h.handles[at] = row.handle
	}
}

// name returns the id of a row that was at about that place.
func (h *head) name(handle uint32, place int) (id string, ok bool) {
	for at := max(place-1, 0); at <= place+1 && at < len(h.handles); at++ {
		if h.handles[at] == handle {
			return h.entries[at].Member, true
		}
	}
	return "", false
}
