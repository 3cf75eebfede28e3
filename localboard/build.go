package localboard

import "slices"

// builder makes an order from rows that come best first.
type builder struct {
	order
	shelf *shelf // to be linked
	chunk *chunk // to be linked in it
}

func newBuilder(age uint64) *builder {
	return &builder{order: order{age: age, spares: new(spares)}}
}

func (b *builder) add(r row) {
	if b.chunk == nil || b.chunk.n == chunkFill {
		b.closeChunk()
		b.chunk = &chunk{age: b.age}
	}
	b.chunk.set(b.chunk.n, r)
	b.chunk.n++
	b.rows++
}

func (b *builder) closeChunk() {
	if b.chunk == nil {
		return
	}
	if b.shelf == nil || b.shelf.n == shelfFill {
		b.closeShelf()
		b.shelf = &shelf{age: b.age, spares: b.spares}
	}
	b.shelf.link(b.shelf.n, b.chunk)
	b.chunk = nil
}

func (b *builder) closeShelf() {
	if b.shelf != nil {
		b.link(len(b.shelves), b.shelf)
		b.shelf = nil
	}
}

func (b *builder) close() *order {
	b.closeChunk()
	b.closeShelf()
	return &b.order
}

// build returns the order of rows, which it sorts.
func build(m *members, rows []row, age uint64) *order {
	slices.SortFunc(rows, m.compare)
	b := newBuilder(age)
	for _, r := range rows {
		b.add(r)
	}
	return b.close()
}

// compare is before for the sort functions. Equal only if a is b.
func (m *members) compare(a, b row) int {
	if m.before(a, b) {
		return -1
	}
	if a.handle == b.handle {
		return 0
	}
	return 1
}

// merged returns the order with the rows of gone taken out and those of come,
// which it sorts, put in. With many of them it costs less than one at a time.
func (o *order) merged(m *members, gone bitset, come []row) *order {
	slices.SortFunc(come, m.compare)
	b := newBuilder(o.age)
	for r := range o.all {
		if gone.has(r.handle) {
			continue
		}
		for len(come) > 0 && m.before(come[0], r) {
			b.add(come[0])
			come = come[1:]
		}
		b.add(r)
	}
	for _, r := range come {
		b.add(r)
	}
	return b.close()
}

// bitset is a set of handles.
type bitset []uint64

func newBitset(end uint32) bitset { return make(bitset, end/64+1) }

func (s bitset) put(h uint32) { s[h/64] |= 1 << (h % 64) }

func (s bitset) has(h uint32) bool { return s[h/64]&(1<<(h%64)) != 0 }
