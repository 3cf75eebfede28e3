package writer

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"rankcache/internal/kafka"
	"rankcache/writer/internal/rewind"
)

const (
	// maxBatch is the most records of a batch, which costs one round trip to Redis
	// and is repeated after a crash.
	maxBatch = 1000
	// pollEvery is how often an idle consumer checks whether to stop.
	pollEvery = 100 * time.Millisecond
	// leaveTimeout is how long a static member that stops takes to give its partitions
	// away; if it fails, the others get them when its session times out.
	leaveTimeout = 5 * time.Second
	// cutTimeout bounds a question for the start of a partition.
	cutTimeout = time.Second
)

// batch is a sequence of records of the command topic.
type batch struct {
	round   *round
	records []*kafka.Message
	polled  time.Time // the first one
	ends    offsets
}

// offsets holds the next offset to process of each partition.
type offsets map[int32]kafka.Offset

// consumer reads the command topic as a member of the writers' group.
type consumer struct {
	client   *kafka.Consumer
	topic    string
	rewinds  *rewinder
	log      *slog.Logger
	errorLog rate.Sometimes
	cutLog   rate.Sometimes // questions for the log's start

	round      *round          // whose commands are read
	rebalanced bool            // the partitions are others
	paused     uint64          // in which round
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
	c := &consumer{client: client, topic: opts.Names.Commands, rewinds: rewinds, log: opts.Log, errorLog: logLimit(), cutLog: logLimit(), round: noRewinds}
	if err := client.Subscribe(c.topic, func(kafka.Event) error { c.rebalanced = true; return nil }); err != nil {
		c.close()
		return nil, fmt.Errorf("kafka consumer: subscribing to %s: %w", c.topic, err)
	}
	return c, nil
}

func (c *consumer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	if err := c.client.Close(); err != nil {
		c.log.Warn("kafka consumer did not close cleanly", "err", err)
	}
}

// leave gives the partitions to the other members of the group. Closing does so too, but not
// for a static member, which is expected back.
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

// next waits for a record and returns it with those already fetched: few at low
// load, many if batches take long. It returns nil once ctx has ended, and an error
// if the client has failed for good.
func (c *consumer) next(ctx context.Context) (*batch, error) {
	for ctx.Err() == nil {
		c.follow()
		b := &batch{round: c.round, ends: make(offsets)}
		for wait := pollEvery; len(b.records) < maxBatch; wait = 0 {
			m, err := c.poll(wait)
			if err != nil {
				return nil, err
			}
			if m == nil || !c.take(b, m) {
				break
			}
		}
		if len(b.ends) > 0 {
			return b, nil
		}
	}
	return nil, nil
}

// follow goes to where the present round begins, once that is known. Until then nothing is fetched.
func (c *consumer) follow() {
	if c.rebalanced {
		c.rebalanced = false
		c.rewinds.assign(numbers(c.mine()))
	}
	now := c.rewinds.round.Load()
	switch {
	case now.number == c.round.number || now.number == c.paused && !now.reading:
		return
	case now.reading && c.seek(now):
		c.round = now
	case !now.reading && c.client.Pause(c.mine()) == nil:
		c.paused = now.number
	}
}

// seek has the partitions read from where a round begins, and reports success: one that was just assigned
// is not fetched yet.
func (c *consumer) seek(to *round) bool {
	c.at = make(map[int32]int64, len(to.seeks))
	err := c.client.Resume(c.mine())
	for p, s := range to.seeks {
		if err != nil {
			break
		}
		at := kafka.On(c.topic, p)
		at.Offset = kafka.Offset(s.Offset)
		c.at[p], err = s.Offset, c.client.Seek(at, 0)
	}
	if err != nil && kafka.Code(err) != kafka.ErrState {
		c.logError(err)
	}
	return err == nil
}

// mine returns the partitions that this writer has.
func (c *consumer) mine() []kafka.TopicPartition {
	mine, err := c.client.Assignment()
	if err != nil {
		c.logError(err)
	}
	return mine
}

func numbers(of []kafka.TopicPartition) []int32 {
	all := make([]int32, len(of))
	for i := range of {
		all[i] = of[i].Partition
	}
	return all
}

// take adds a record, or the end of a partition, to a batch, and reports whether more may follow. In a round with rewinds nothing is
// taken that is not of it.
func (c *consumer) take(b *batch, m *kafka.Message) bool {
	p, offset, next := m.TopicPartition.Partition, int64(m.TopicPartition.Offset), m.TopicPartition.Offset+1
	if end := m.TopicPartition.Error != nil; end {
		if next--; c.round.number == 0 || offset <= c.at[p] {
			return true // behind the last record
		}
	} else if b.records == nil {
		b.polled = time.Now()
	}
	if c.round.number != 0 {
		at, mine := c.at[p]
		switch {
		case c.rebalanced || !mine || c.rewinds.stale(c.round):
			return false
		case offset < at || offset > at && c.isCut(p, at):
			c.rewinds.tell(rewind.Cut{Round: c.round.number})
			return false
		}
		c.at[p] = int64(next)
	}
	if b.ends[p] = next; m.TopicPartition.Error == nil {
		b.records = append(b.records, m)
	}
	return true
}

// isCut reports whether the log begins behind an offset that was to be read. Transactions leave gaps,
// too, so it is asked once a second.
func (c *consumer) isCut(partition int32, offset int64) (cut bool) {
	c.cutLog.Do(func() {
		start, _, err := c.client.QueryWatermarkOffsets(c.topic, partition, int(cutTimeout.Milliseconds()))
		cut = err == nil && start > offset
	})
	return cut
}

// poll returns a record, the end of a partition as a message with an error, or nil if there is none or an event
// was handled instead.
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

// logs tells what a rewind needs to know of partitions. life is how far back order ids are known, half
// that of the class that forgets first.
func (c *consumer) logs(ctx context.Context, partitions []int32, life, half time.Duration) (map[int32]rewind.Log, error) {
	of := make(map[int32]rewind.Log, len(partitions))
	if len(partitions) == 0 {
		return of, nil
	}
	topic, err := c.client.TopicID(ctx, c.topic)
	if err != nil {
		return nil, err
	}
	all, now := make([]kafka.TopicPartition, len(partitions)), time.Now()
	for i, p := range partitions {
		all[i] = kafka.On(c.topic, p)
	}
	var at [4]map[int32]int64
	for i, spec := range []kafka.OffsetSpec{kafka.First, kafka.End, kafka.Since(now.Add(-life)), kafka.Since(now.Add(-half))} {
		if at[i], err = c.client.OffsetsOf(ctx, all, spec, kafka.ReadCommitted); err != nil {
			return nil, err
		}
	}
	committed, err := c.client.Committed(all, int(askTimeout.Milliseconds()))
	for i := 0; err == nil && i < len(committed); i++ {
		p := committed[i].Partition
		l := rewind.Log{Topic: topic, Start: at[0][p], End: at[1][p], LifeBack: at[2][p], HalfLifeBack: at[3][p], Committed: int64(committed[i].Offset)}
		if l.LifeBack < 0 { // no record is so late
			l.LifeBack = l.End
		}
		if l.HalfLifeBack < 0 {
			l.HalfLifeBack = l.End
		}
		of[p], err = l, committed[i].Error
	}
	if err != nil {
		return nil, fmt.Errorf("committed offsets of %s: %w", c.topic, err)
	}
	return of, nil
}

func (c *consumer) logError(err error) {
	c.errorLog.Do(func() { c.log.Warn("kafka consumer", "err", err) })
}

// commit commits the offsets of the partitions that are still assigned to this
// writer. The new owner of any other repeats what was not committed.
func (c *consumer) commit(ends offsets) error {
	mine, err := c.client.Assignment()
	if err != nil {
		return fmt.Errorf("kafka assignment: %w", err)
	}
	var commits []kafka.TopicPartition
	for _, tp := range mine {
		if end, ok := ends[tp.Partition]; ok {
			commits = append(commits, kafka.TopicPartition{Topic: &c.topic, Partition: tp.Partition, Offset: end})
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
