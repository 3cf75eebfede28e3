package localboard

// chunkRows is how many rows a chunk holds at most: 63 make 1,280 bytes, one of
// the allocator's sizes. Chosen by measurement (BenchmarkSet): with 32 the spine
// is long to copy at each publication, with 133 the chunks are; standings hardly
// differ. chunkFill is how full a rebuilt one is, which leaves room for rows that
// come.
const (
	chunkRows = 63
	chunkFill = chunkRows * 3 / 4
)

// row is one place of the order: a member with its score. key is the member's
// sort key, so that equal scores rarely need the ids.
type row struct {
	score  float64
	key    uint64
	handle uint32
}

// before says whether a stands before b in Redis's falling order: by score,
// then by the bytes of the id.
func (m *members) before(a, b row) bool {
	if a.score != b.score {
		return a.score > b.score
	}
	if a.key != b.key {
		return a.key > b.key
	}
	return a.handle != b.handle && m.at(a.handle).name() > m.at(b.handle).name()
}

// chunk is a run of rows, best first, column by column, so that a search by
// score reads nothing else.
type chunk struct {
	// age is the publication that it was made for. The writer changes chunks of
	// the coming publication; older ones belong to readers.
	age     uint64
	n       int
	scores  [chunkRows]float64
	keys    [chunkRows]uint64
	handles [chunkRows]uint32
}

func (c *chunk) row(i int) row { return row{c.scores[i], c.keys[i], c.handles[i]} }

func (c *chunk) head() head { return head{c.scores[0], c.keys[0]} }

func (c *chunk) set(i int, r row) { c.scores[i], c.keys[i], c.handles[i] = r.score, r.key, r.handle }

// place returns how many rows stand before r: where it is, or belongs.
func (c *chunk) place(m *members, r row) int {
	lo, hi := 0, c.n
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if c.isBefore(m, mid, r) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

func (c *chunk) isBefore(m *members, i int, r row) bool {
	if s := c.scores[i]; s != r.score {
		return s > r.score
	}
	return m.before(c.row(i), r)
}

// shift moves rows [from, to) to begin at at, within the chunk.
func (c *chunk) shift(at, from, to int) {
	copy(c.scores[at:], c.scores[from:to])
	copy(c.keys[at:], c.keys[from:to])
	copy(c.handles[at:], c.handles[from:to])
}

func (c *chunk) insert(i int, r row) {
	c.shift(i+1, i, c.n)
	c.set(i, r)
	c.n++
}

func (c *chunk) remove(i int) {
	c.shift(i, i+1, c.n)
	c.n--
}

// move takes row i away and puts r where to rows stand before it, the row
// taken away counted.
func (c *chunk) move(i, to int, r row) {
	if to > i {
		to--
		c.shift(i, i+1, to+1)
	} else {
		c.shift(to+1, to, i)
	}
	c.set(to, r)
}

// take appends rows [from, to) of other.
func (c *chunk) take(other *chunk, from, to int) {
	copy(c.scores[c.n:], other.scores[from:to])
	copy(c.keys[c.n:], other.keys[from:to])
	copy(c.handles[c.n:], other.handles[from:to])
	c.n += to - from
}
