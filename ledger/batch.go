package ledger

import (
	"maps"
	"slices"
	"strings"

	"rankcache"
	"rankcache/wire"
)

const MaxBatch = 2000 // the most records of a batch

// Batch is a run of records of the ledger's topic that becomes one transaction. It is not safe for concurrent use.
type Batch struct {
	Topic string

	updates []*wire.LedgerUpdate
	bad     []badRecord
	ends    map[int32]Span
	repeats int              // records of the same change within the batch
	lists   int              // records of eras
	eras    map[int32]string // the last of them, by partition

	keys   map[logKey]*wire.LedgerUpdate
	parts  map[rankcache.BoardID]int32
	orders map[orderKey]*wire.LedgerUpdate
	runs   map[rankcache.BoardID]uint64
	mixed  bool // a board has changes of several runs
}

// badRecord is a record that tells of no change.
type badRecord struct {
	partition int32
	offset    int64
	reason    string
	value     []byte
}

// NewBatch returns an empty batch of a topic.
func NewBatch(topic string) *Batch {
	return &Batch{Topic: topic, ends: make(map[int32]Span), keys: make(map[logKey]*wire.LedgerUpdate), parts: make(map[rankcache.BoardID]int32), eras: make(map[int32]string),
		orders: make(map[orderKey]*wire.LedgerUpdate), runs: make(map[rankcache.BoardID]uint64)}
}

// Len returns how many records the batch has.
func (b *Batch) Len() int { return len(b.updates) + len(b.bad) + b.repeats + b.lists }

// Add adds a record, kept by the batch; first is where the database reads on. False: it does not go with this batch.
func (b *Batch) Add(u *wire.LedgerUpdate, partition int32, first, offset int64) bool {
	if b.Len() >= MaxBatch {
		return false
	}
	key, order := logKey{u.Board, u.Run, u.Seq}, orderOf(&u.Update)
	before, other := b.keys[key], b.orders[order]
	if before != nil && (!same(&before.Update, &u.Update) || before.Era != u.Era) || u.OrderID != "" && other != before {
		return false
	}
	b.read(partition, first, offset)
	b.parts[u.Board] = partition
	if before != nil {
		b.repeats++
		return true
	}
	b.updates = append(b.updates, u)
	run, ok := b.runs[u.Board]
	b.mixed = b.mixed || ok && run != u.Run
	b.keys[key], b.runs[u.Board] = u, u.Run
	if u.OrderID != "" {
		b.orders[order] = u
	}
	return true
}

// AddEras adds a record that names the servers which are masters, as [Batch.Add] does.
func (b *Batch) AddEras(eras []string, partition int32, first, offset int64) bool {
	if b.Len() >= MaxBatch {
		return false
	}
	b.read(partition, first, offset)
	b.lists++
	b.eras[partition] = strings.Join(eras, " ")
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

// partitions returns those from which the batch has records.
func (b *Batch) partitions() []int32 { return slices.Collect(maps.Keys(b.ends)) }

// Result tells what became of a batch.
type Result struct {
	Rows    int // written to rank_log
	Repeats int // of changes that were there
	Aside   int // moved or written to rank_lost
	Bad     int // written to rank_bad
	Reborn  int // boards that have begun again
}

// bare returns changes without what tells of their boards.
func bare(updates []*wire.LedgerUpdate) []*wire.Update {
	all := make([]*wire.Update, len(updates))
	for i, u := range updates {
		all[i] = &u.Update
	}
	return all
}
