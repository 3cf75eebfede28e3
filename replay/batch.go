package replay

// Batches go round between reader and pump, which bounds what waits in between.
const (
	batchItems = 1024 // enough to make the hand-over cheap, about 2 ms of polling
	batchCount = 6
)

// item is one thing that the pump does, in the order in which the reader saw it.
type item struct {
	part   *partition
	offset int64  // of the record, or of the end
	value  []byte // of the record
	kind   itemKind
}

type itemKind uint8

const (
	itemRecord itemKind = iota
	itemEnd             // nothing is before offset that was not read
	itemBegin           // the records of part.topic follow, from its beginning
)

// batches is the ring: the pump hands back what the reader filled.
type batches struct {
	full, free chan []item
}

func newBatches() batches {
	b := batches{make(chan []item, batchCount), make(chan []item, batchCount)}
	for range batchCount {
		b.free <- make([]item, 0, batchItems)
	}
	return b
}

// recycle gives a batch back, and the records in it to the collector.
func (b batches) recycle(batch []item) {
	clear(batch)
	b.free <- batch[:0] // never blocks: there are no more batches than places
}
