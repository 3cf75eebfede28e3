package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"rankcache/internal/kafka"
	"rankcache/wire"
)

const (
	pollEvery = 100 * time.Millisecond // how often an idle consumer checks whether to stop
	linger    = 20 * time.Millisecond  // how long a batch waits for more records after its first
)

// consumer reads the topic in the ledgers' group, from the database's offsets. It belongs to one goroutine.
type consumer struct {
	finder
	most    int            // records of a batch
	waiting *kafka.Message // did not fit into the last batch
	cut     bool           // partitions came or went: the batch ends
	fatal   error          // what no attempt will change
}

// newConsumer returns a consumer that is joining its group. The caller closes it.
func newConsumer(ctx context.Context, l *Ledger) (*consumer, error) {
	ours := kafka.Settings{"client.id": "rankcache-ledger", "auto.offset.reset": "error"} // what the topic has no longer is skipped with an alert only
	client, err := kafka.NewConsumer(kafka.Debug(l.log), kafka.Member(l.opts.Group), ours, l.opts.Kafka)
	if err != nil {
		return nil, err
	}
	c := &consumer{finder: finder{Ledger: l, ctx: ctx, client: client, next: newPlaces(l.metrics.lag), errLog: rate.Sometimes{Interval: logEvery}}, most: MaxBatch}
	if err := client.Subscribe(l.opts.Topic, c.rebalance); err != nil {
		c.close()
		return nil, fmt.Errorf("kafka consumer: subscribing to %s: %w", l.opts.Topic, err)
	}
	return c, nil
}

func (c *consumer) close() {
	if err := c.client.Close(); err != nil {
		c.log.Warn("kafka consumer did not close cleanly", "err", err)
	}
}

// batch waits for a record, and returns it with those soon after, or none. Error: client or topic can't be used.
func (c *consumer) batch() (*Batch, time.Time, error) {
	b, wait, oldest := NewBatch(c.opts.Topic), pollEvery, time.Time{}
	c.cut = false
	for begun := time.Now(); ; {
		m, err := c.record(wait)
		if err != nil || c.fatal != nil {
			return b, oldest, errors.Join(err, c.fatal)
		}
		if m == nil {
			if c.cut || b.Len() == 0 || wait <= 0 {
				return b, oldest, nil
			}
		} else if !c.add(b, m) {
			c.waiting = m
			return b, oldest, nil
		}
		if b.Len() == 1 && oldest.IsZero() && m != nil {
			oldest, begun = m.Timestamp, time.Now()
		}
		if c.cut {
			return b, oldest, nil
		}
		if b.Len() > 0 {
			wait = max(0, linger-time.Since(begun))
		}
	}
}

// add adds a record to a batch. It reports false if it does not fit. Records of partitions that are gone are dropped.
func (c *consumer) add(b *Batch, m *kafka.Message) bool {
	p, offset := m.TopicPartition.Partition, int64(m.TopicPartition.Offset)
	first, mine := c.next.get(p)
	if !mine || offset < first {
		return true
	}
	if b.Len() >= c.most {
		return false
	}
	if eras, ok := wire.DecodeEras(m.Value); ok {
		return b.AddEras(eras, p, first, offset)
	}
	u := &wire.LedgerUpdate{}
	err := wire.DecodeLedgerUpdate(m.Value, u)
	if err == nil {
		return b.Add(u, p, first, offset)
	}
	if later, newer := wire.NewerUpdate(m.Value); newer && !c.opts.PutAside {
		if b.Len() > 0 { // what its run begins with may be in it
			return false
		}
		if c.fatal = c.refuse(&later, p, offset); c.fatal != nil {
			return false
		}
	}
	reason := "json"
	if bad, ok := errors.AsType[*wire.BadUpdate](err); ok {
		reason = bad.Reason
	}
	if !b.AddBad(reason, m.Value, p, first, offset) {
		return false
	}
	c.metrics.bad.WithLabelValues(reason).Inc()
	c.errLog.Do(func() {
		c.log.Error("record is not a change: kept in rank_bad", "partition", p, "offset", offset, "err", err)
	})
	return true
}

// ErrNewer reports changes that a newer writer has published, and that this version can't read.
var ErrNewer = errors.New("upgrade the ledger first: its topic has changes of newer writers")

// refuse returns an error if a newer version's record knows the run of a board in the database: a writer's, not forged.
func (c *consumer) refuse(u *wire.Update, partition int32, offset int64) error {
	known := false
	err := c.retry(c.ctx, "database", func() (err error) { known, err = c.opts.Store.hasRun(c.ctx, u.Board, u.Run); return err })
	if err == nil && known {
		c.next.unread(partition)
		err = fmt.Errorf("%w (board %s, run %d, seq %d, partition %d, offset %d); --put-aside keeps them in rank_bad", ErrNewer, u.Board, u.Run, u.Seq, partition, offset)
	}
	return err
}

// record returns the next record, or nil if there is none or an event was handled instead.
func (c *consumer) record(wait time.Duration) (*kafka.Message, error) {
	if m := c.waiting; m != nil {
		c.waiting = nil
		return m, nil
	}
	m, err := c.client.Record(wait)
	switch {
	case err == nil:
		return m, nil
	case kafka.Fatal(err):
		return nil, fmt.Errorf("kafka consumer failed: %w", err)
	case m != nil:
		return nil, c.failed(err, m.TopicPartition.Partition)
	}
	return nil, c.failed(err, kafka.PartitionAny)
}

// failed handles an error of the client. A position that the topic lost is looked for again; others pass.
func (c *consumer) failed(err error, partition int32) error {
	c.errLog.Do(func() { c.log.Warn("kafka consumer", "err", err) })
	if code := kafka.Code(err); code != kafka.ErrAutoOffsetReset && code != kafka.ErrOffsetOutOfRange {
		return nil
	}
	if partition < 0 {
		return c.seek(slices.Collect(maps.Keys(c.next.all()))...)
	}
	return c.seek(partition)
}

// written notes that the database has a batch. After a full one the next may be larger: a refusal costs a second.
func (c *consumer) written(b *Batch) {
	if b.Len() >= c.most {
		c.most = min(MaxBatch, c.most+1)
	}
	for p, span := range b.ends {
		if _, mine := c.next.get(p); mine {
			c.next.set(p, span.Next)
		}
	}
}

// halve reads a batch again that the database refuses for its size, as smaller ones.
func (c *consumer) halve(b *Batch, refused error) error {
	c.most = b.Len() / 2
	c.log.Warn("the database refuses a batch for its size: it is written in parts; raise its limit", "records", b.Len(), "err", refused)
	return c.seek(b.partitions()...)
}

// leads reports whether this is the ledger of the first partition, which one of them is.
func (c *consumer) leads() bool {
	_, mine := c.next.get(0)
	return mine
}

func (c *consumer) seek(partitions ...int32) error {
	c.waiting = nil // of one of these, or read again
	for _, p := range partitions {
		if _, mine := c.next.get(p); !mine {
			continue
		}
		next, err := c.place(p)
		if err != nil {
			return err
		}
		at := kafka.TopicPartition{Topic: &c.opts.Topic, Partition: p, Offset: kafka.Offset(next)}
		if err := c.client.Seek(at, 0); err != nil {
			return fmt.Errorf("kafka consumer: partition %d can't be read from offset %d: %w", p, next, err)
		}
		c.next.set(p, next)
	}
	return nil
}

// rebalance takes and gives up partitions. It runs in a poll.
func (c *consumer) rebalance(ev kafka.Event) error {
	c.cut = true
	switch ev := ev.(type) {
	case kafka.AssignedPartitions:
		for i, tp := range ev.Partitions {
			next, err := c.place(tp.Partition)
			if err != nil {
				c.fatal = errors.Join(c.fatal, err)
				return nil
			}
			ev.Partitions[i].Offset = kafka.Offset(next)
			c.next.set(tp.Partition, next)
		}
		if err := c.claim(ev.Partitions); err != nil {
			c.fatal = errors.Join(c.fatal, err)
			return nil
		}
		return c.client.IncrementalAssign(ev.Partitions)
	case kafka.RevokedPartitions:
		for _, tp := range ev.Partitions {
			c.next.drop(tp.Partition)
		}
		return c.client.IncrementalUnassign(ev.Partitions)
	}
	return nil
}
