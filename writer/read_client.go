package writer

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"rankcache/internal/kafka"
)

const (
	pollEvery    = 100 * time.Millisecond // how often an idle consumer checks whether to stop
	leaveTimeout = 5 * time.Second        // how long a static member may take to leave; else the session times out
	cutTimeout   = time.Second            // bounds a question for the start of a partition
)

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
		return nil, fmt.Errorf("kafka consumer: %w: another writer of the group has this one's --group-instance (each needs one of its own), or this one hung for longer than its session: start it again", err)
	case kafka.Fatal(err):
		return nil, fmt.Errorf("kafka consumer failed: %w", err)
	}
	c.logError(err)
	return nil, nil
}

func (c *consumer) logError(err error) {
	c.errorLog.Do(func() { c.log.Warn("kafka consumer", "err", err) })
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

func (c *consumer) seekTo(partition int32, offset kafka.Offset) error {
	at := kafka.On(c.topic, partition)
	at.Offset = offset
	return c.client.Seek(at, 0)
}

// sought reports whether partitions are read from where they are to be. One that was just assigned is not for a moment.
func (c *consumer) sought(err error) bool {
	if err != nil && kafka.Code(err) != kafka.ErrState {
		c.logError(err)
	}
	return err == nil
}

// identify asks for the id of the topic.
func (c *consumer) identify(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return c.client.TopicID(ctx, c.topic)
}

// reading returns the id of the topic that is read, "" while it is not known.
func (c *consumer) reading() string {
	if id := c.reads.Load(); id != nil {
		return *id
	}
	return ""
}

// commit commits a topic's offsets in partitions still assigned here; others' new owners repeat the rest.
func (c *consumer) commit(ends offsets, topic string) error {
	mine, err := c.client.Assignment()
	if err != nil {
		return fmt.Errorf("kafka assignment: %w", err)
	}
	var commits []kafka.TopicPartition
	// That masters have positions is noted beside offsets: else a master without is not damaged.
	note := kafka.Note{Topic: topic, Positions: c.rewinds.round.Load().number > 0}.String()
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

type partitionStatus struct {
	Partition int32 `json:"partition"`
	// Next is the offset of the record that the writer takes next, End that of the next
	// record to come, and Lag their difference; nil while the client does not know.
	Next *int64 `json:"next"`
	End  *int64 `json:"end"`
	Lag  *int64 `json:"lag"`
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
