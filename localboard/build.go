package localboard

import "slices"

// builder makes an order from rows that come best first.
type builder struct {
	order
	last *chunk
}

func newBuilder(age uint64) *builder {
	return &builder{order: order{age: age}}
}

func (b *builder) add(r row) {
	if b.last == nil || b.last.n == chunkFill {
		b.close()
		b.last = &chunk{age: b.age}
	}
	b.last.set(b.last.n, r)
	b.last.n++
	b.rows++
}

func (b *builder) close() *order {
	if b.last != nil {
		b.link(len(b.chunks), b.last)
		b.last = nil
	}
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
	for r := range o.all() {
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

// all yields every row, best first.
func (o *order) all() func(yield func(row) bool) {
	return func(yield func(row) bool) {
		for _, c := range o.chunks {
			for i := range c.n {
				if !yield(c.row(i)) {
					return
				}
			}
		}
	}
}

// bitset is a set of handles.
type bitset []uint64

func newBitset(end uint32) bitset { return make(bitset, end/64+1) }

func (s bitset) put(h uint32) { s[h/64] |= 1 << (h % 64) }

func (s bitset) has(h uint32) bool { return s[h/64]&(1<<(h%64)) != 0 }
