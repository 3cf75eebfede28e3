package writer

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/internal/kafka"
)

const (
	// maxBatch is the most records of a batch, which costs one round trip to Redis and is repeated after a crash.
	maxBatch     = 1000
	pollEvery    = 100 * time.Millisecond // how often an idle consumer checks whether to stop
	leaveTimeout = 5 * time.Second        // how long a static member may take to leave; else the session times out
	cutTimeout   = time.Second            // bounds a question for the start of a partition
)

// maxKept is the most records that wait for the ledger in memory, about 10 MB. With as many nothing more is read.
const maxKept = 20_000

// batch is a sequence of records of the command topic.
type batch struct {
	round   *round
	topic   string           // its id; "" if it is not known
	records []*kafka.Message // those that were kept of the batch before come first
	polled  time.Time        // the first one
	ends    offsets
	left    offsets             // the first of each partition that were left out, and are to be read again
	kept    []*kafka.Message    // those that are not done, as boards wait for the ledger
	sent    map[sentUpdate]bool // what came of those already, here or in earlier batches
}

// sentUpdate is an update of a board by a record that is kept.
type sentUpdate struct {
	record *kafka.Message
	board  rankcache.BoardID
}

func (b *batch) leave(m *kafka.Message) {
	if _, ok := b.left[m.TopicPartition.Partition]; !ok {
		b.left[m.TopicPartition.Partition] = m.TopicPartition.Offset
	}
}

// keep keeps a record for the next batch, if one of its jobs waits: all of it comes again, and what is applied now is
// then a repeat, which is not published once more. It is not committed, nor told by a position.
func (b *batch) keep(m *kafka.Message, jobs ...*job) (kept bool) {
	if kept = slices.ContainsFunc(jobs, func(j *job) bool { return j.waits }); !kept {
		return false
	}
	b.kept = append(b.kept, m)
	for _, j := range jobs {
		one := sentUpdate{m, j.Board}
		if j.told = j.told || b.sent[one]; !j.waits {
			b.sent[one] = true
		}
	}
	return true
}

// cap has the batch end before the first record of each partition that is kept.
func (b *batch) cap() {
	for _, m := range b.kept {
		if at := m.TopicPartition; b.ends[at.Partition] > at.Offset {
			b.ends[at.Partition] = at.Offset
		}
	}
}

type offsets map[int32]kafka.Offset // holds the next offset to process of each partition

// consumer reads the command topic as a member of the writers' group.
type consumer struct {
	client   *kafka.Consumer
	topic    string
	rewinds  *rewinder
	log      *slog.Logger
	errorLog rate.Sometimes
	cutLog   rate.Sometimes // questions for the log's start

	reads    atomic.Pointer[string] // id of the topic that is read; nil until that is known
	replaced atomic.Bool            // the topic that has the name seems to be another one
	given    map[int32]bool         // partitions that are not read from where they are to be; without rounds of the machine
	unnoted  map[int32]bool         // partitions beside whose committed offset no topic is noted
	behind   map[int32]bool         // those whose committed offset is before what the positions tell; nil without rounds

	round      *round          // whose commands are read
	rebalanced bool            // the partitions are others
	paused     uint64          // in which round
	full       bool            // paused, as enough records are kept
	at         map[int32]int64 // next offset of each; only in a round of the machine

	mu     sync.Mutex // guards closed; held only while the client is asked for what it remembers
	closed bool
}

// newConsumer returns a consumer that is joining its group. The caller closes it.
func newConsumer(opts Options, rewinds *rewinder) (*consumer, error) {
	client, err := opts.newClient()
	if err != nil {
		return nil, err
	}
	c := &consumer{client: client, topic: opts.Names.Commands, rewinds: rewinds, log: opts.Log, errorLog: logLimit(), cutLog: logLimit(), round: noRewinds,
		given: make(map[int32]bool), unnoted: make(map[int32]bool)}
	if err := client.Subscribe(c.topic, c.rebalance); err != nil {
		c.close()
		return nil, fmt.Errorf("kafka consumer: subscribing to %s: %w", c.topic, err)
	}
	return c, nil
}

// rebalance notes what comes and goes. It runs in a poll, and no record is taken before [consumer.follow].
func (c *consumer) rebalance(ev kafka.Event) error {
	c.rebalanced = true
	switch ev := ev.(type) {
	case kafka.AssignedPartitions:
		for _, p := range ev.Partitions {
			c.given[p.Partition] = true
		}
	case kafka.RevokedPartitions:
		for _, p := range ev.Partitions {
			delete(c.given, p.Partition)
		}
	}
	return nil
}

func (c *consumer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	if err := c.client.Close(); err != nil {
		c.log.Warn("kafka consumer did not close cleanly", "err", err)
	}
}

// leave gives the partitions away, which closing does not do for a static member: it is expected back.
func (c *consumer) leave() {
	if err := c.client.Unsubscribe(); err != nil {
		c.logError(err)
		return
	}
	for end := time.Now().Add(leaveTimeout); time.Now().Before(end); {
		if mine, err := c.client.Assignment(); err != nil || len(mine) == 0 {
			return
		}
		_, _ = c.poll(pollEvery) // takes part in giving them away
	}
}

// next waits for a record and returns it with those fetched: few at low load, many if batches take long. Kept records
// of last come first if their round is not over. Nil: ctx has ended; an error: the client failed.
func (c *consumer) next(ctx context.Context, last *batch) (*batch, error) {
	for ctx.Err() == nil {
		if !c.follow() {
			if _, err := c.poll(pollEvery); err != nil { // it is read again
				return nil, err
			}
			continue
		}
		b := &batch{round: c.round, topic: c.reading(), ends: make(offsets), left: make(offsets), sent: make(map[sentUpdate]bool)}
		if last != nil && last.round == c.round && len(last.kept) > 0 {
			b.records, b.polled, b.sent = last.kept, last.polled, last.sent
			for _, m := range last.kept {
				p := m.TopicPartition.Partition
				b.ends[p] = kafka.Offset(c.at[p])
			}
		}
		kept := len(b.records)
		c.pauseAt(kept)
		for wait := pollEvery; len(b.records) < kept+maxBatch; wait = 0 {
			m, err := c.poll(wait)
			if err != nil {
				return nil, err
			}
			if m == nil || !c.take(b, m) {
				break
			}
		}
		if len(b.ends) > 0 || kept > 0 {
			return b, nil
		}
	}
	return nil, nil
}

// pauseAt has nothing fetched while enough records are kept. Polling goes on, so that the group keeps the writer.
func (c *consumer) pauseAt(kept int) {
	if full := kept >= maxKept; full != c.full {
		var err error
		if c.full = full; full {
			err = c.client.Pause(c.mine())
		} else {
			err = c.client.Resume(c.mine())
		}
		if err != nil {
			c.logError(err)
		}
	}
}

// poll returns a record, a partition's end as a message with an error, or nil after an event or without one.
func (c *consumer) poll(wait time.Duration) (*kafka.Message, error) {
	m, err := c.client.Record(wait)
	switch {
	case err == nil:
		return m, nil
	case kafka.Code(err) == kafka.ErrPartitionEOF:
		m.TopicPartition.Error = err
		return m, nil
	case kafka.Code(err) == kafka.ErrFencedInstanceID && kafka.Fatal(err):
		return nil, fmt.Errorf("kafka consumer: %w: another writer of the group has this one's --group-instance: each needs one of its own", err)
	case kafka.Fatal(err):
		return nil, fmt.Errorf("kafka consumer failed: %w", err)
	}
	c.logError(err)
	return nil, nil
}

func (c *consumer) logError(err error) {
	c.errorLog.Do(func() { c.log.Warn("kafka consumer", "err", err) })
}

// commit commits a topic's offsets in partitions still assigned here; others' new owners repeat the rest.
func (c *consumer) commit(ends offsets, topic string) error {
	mine, err := c.client.Assignment()
	if err != nil {
		return fmt.Errorf("kafka assignment: %w", err)
	}
	var commits []kafka.TopicPartition
	note := kafka.Note{Topic: topic, Positions: c.keepsPositions()}.String()
	for _, tp := range mine {
		if end, ok := ends[tp.Partition]; ok {
			commits = append(commits, kafka.TopicPartition{Topic: &c.topic, Partition: tp.Partition, Offset: end, Metadata: &note})
		}
	}
	if len(commits) == 0 {
		return nil
	}
	committed, err := c.client.CommitOffsets(commits)
	if err != nil {
		return fmt.Errorf("kafka commit: %w", err)
	}
	for _, tp := range committed {
		if tp.Error != nil {
			return fmt.Errorf("kafka commit of partition %d: %w", tp.Partition, tp.Error)
		}
	}
	return nil
}

// status returns how far the client has come in its partitions. It calls no server.
func (c *consumer) status() (all []partitionStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	mine, _ := c.client.Assignment()
	mine, _ = c.client.Position(mine) // after an error none
	for _, tp := range mine {
		st := partitionStatus{Partition: tp.Partition}
		if tp.Offset >= 0 {
			st.Next = new(int64(tp.Offset))
		}
		if _, end, err := c.client.GetWatermarkOffsets(c.topic, tp.Partition); err == nil && end >= 0 {
			st.End = &end
		}
		if st.Next != nil && st.End != nil {
			st.Lag = new(max(*st.End-*st.Next, 0))
		}
		all = append(all, st)
	}
	return all
}

// add records that everything before the ends is processed.
func (o offsets) add(ends offsets) { maps.Copy(o, ends) }

// keep adds the offsets of other partitions than there are.
func (o offsets) keep(others offsets) {
	for p, at := range others {
		if _, ok := o[p]; !ok {
			o[p] = at
		}
	}
}

// atMost lowers the offsets that are behind others.
func (o offsets) atMost(others offsets) offsets {
	for p, at := range others {
		if end, ok := o[p]; ok {
			o[p] = min(end, at)
		}
	}
	return o
}
