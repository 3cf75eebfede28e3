package ledger

import (
	"maps"
	"slices"

	"rankcache"
	"rankcache/wire"
)

// MaxBatch is the most records of a batch.
const MaxBatch = 2000

// Batch is a run of records of the ledger's topic that becomes one transaction. It is not
// safe for concurrent use.
type Batch struct {
	Topic string

	updates []*wire.LedgerUpdate
	bad     []badRecord
	ends    map[int32]Span
	repeats int // records of the same change within the batch

	keys   map[logKey]*wire.Update
	orders map[orderKey]*wire.Update
	runs   map[rankcache.BoardID]uint64
	mixed  bool // a board has changes of several runs
}

// Span is what a batch has of a partition: First was to be read next before, Next is after
// it.
type Span struct{ First, Next int64 }

type logKey struct {
	board    rankcache.BoardID
	run, seq uint64
}

type orderKey struct {
	memberKey
	order string
	op    wire.Op // a change and the trim that it caused have one order id, and may have one member
}

func orderOf(u *wire.Update) orderKey { return orderKey{memberOf(u), u.OrderID, u.Op} }

// badRecord is a record that tells of no change.
type badRecord struct {
	partition int32
	offset    int64
	reason    string
	value     []byte
}

// NewBatch returns an empty batch of a topic.
func NewBatch(topic string) *Batch {
	return &Batch{Topic: topic, ends: make(map[int32]Span), keys: make(map[logKey]*wire.Update),
		orders: make(map[orderKey]*wire.Update), runs: make(map[rankcache.BoardID]uint64)}
}

// Len returns how many records the batch has.
func (b *Batch) Len() int { return len(b.updates) + len(b.bad) + b.repeats }

// Add adds a record, which the batch keeps; first is where the partition is to be read on
// in the database. It reports false, and adds nothing, if the batch is full or has a change
// that can't stand beside this one: both are decided one after the other.
func (b *Batch) Add(u *wire.LedgerUpdate, partition int32, first, offset int64) bool {
	if b.Len() >= MaxBatch {
		return false
	}
	key, order := logKey{u.Board, u.Run, u.Seq}, orderOf(&u.Update)
	before, other := b.keys[key], b.orders[order]
	if before != nil && !same(before, &u.Update) || u.OrderID != "" && other != before {
		return false
	}
	b.read(partition, first, offset)
	if before != nil {
		b.repeats++
		return true
	}
	b.updates = append(b.updates, u)
	run, ok := b.runs[u.Board]
	b.mixed = b.mixed || ok && run != u.Run
	b.keys[key], b.runs[u.Board] = &u.Update, u.Run
	if u.OrderID != "" {
		b.orders[order] = &u.Update
	}
	return true
}

// AddBad adds a record that can't be read as a change, as [Batch.Add] does.
func (b *Batch) AddBad(reason string, value []byte, partition int32, first, offset int64) bool {
	if b.Len() >= MaxBatch {
		return false
	}
	b.read(partition, first, offset)
	b.bad = append(b.bad, badRecord{partition, offset, reason, value[:min(len(value), wire.MaxUpdateLen)]})
	return true
}

func (b *Batch) read(partition int32, first, offset int64) {
	span, ok := b.ends[partition]
	if !ok {
		span.First = first
	}
	span.Next = offset + 1
	b.ends[partition] = span
}

// all returns the changes without what tells of their boards.
func (b *Batch) all() []*wire.Update {
	updates := make([]*wire.Update, len(b.updates))
	for i, u := range b.updates {
		updates[i] = &u.Update
	}
	return updates
}

// partitions returns those from which the batch has records.
func (b *Batch) partitions() []int32 { return slices.Collect(maps.Keys(b.ends)) }
