package writer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rankcache/internal/kafka"
	"rankcache/writer/internal/rewind"
)

// follow goes to the round's beginning once known, and reports whether records may be taken; else none are.
func (c *consumer) follow() bool {
	if c.rebalanced {
		c.rebalanced = false
		c.rewinds.assign(numbers(c.mine()))
	}
	c.lookAtTopic()
	now := c.rewinds.round.Load()
	switch {
	case now == c.round:
		return now.number > 0 || c.goOn()
	case now.number == c.paused && !now.reading:
	case now.reading && c.seek(now):
		c.round = now
		return true
	case !now.reading && c.client.Pause(c.mine()) == nil:
		c.paused = now.number
	}
	return c.round.number > 0
}

// seek has partitions read from a round's beginning, and reports success: new ones are not fetched yet.
func (c *consumer) seek(to *round) bool {
	c.at, c.behind = make(map[int32]int64, len(to.seeks)), make(map[int32]bool)
	err := c.client.Resume(c.mine())
	if to.number == 0 && err == nil {
		return c.goTo(c.mine())
	}
	for p, s := range to.seeks {
		if err == nil {
			c.behind[p] = s.Offset > s.Published
			c.at[p], err = s.Offset, c.seekTo(p, kafka.Offset(s.Offset))
		}
	}
	if err == nil {
		c.readsOf(to.topicID)
		clear(c.given)
	}
	return c.sought(err)
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

// take adds a record, or the end of a partition, to a batch, and reports whether more may follow. What is
// not read from where it is to be is not taken, and in a round of the machine nothing that is not of it.
func (c *consumer) take(b *batch, m *kafka.Message) bool {
	p, next, isEnd := m.TopicPartition.Partition, m.TopicPartition.Offset, m.TopicPartition.Error != nil
	switch {
	case c.round.number == 0 && c.given[p]:
		return false
	case isEnd && c.round.number == 0 && c.unnoted[p]: // its offset is committed with the topic
		delete(c.unnoted, p)
	case isEnd && c.behind[p] && int64(next) == c.at[p]: // it is committed, else there was a lag for ever
		delete(c.behind, p)
	case isEnd && (c.round.number == 0 || int64(next) <= c.at[p]):
		return true // the last record tells as much
	case c.round.number != 0 && !c.expects(p, int64(next)):
		return false
	}
	if !isEnd {
		if b.records == nil {
			b.polled = time.Now()
		}
		b.records = append(b.records, m)
		next++
	}
	if b.ends[p] = next; c.round.number != 0 {
		c.at[p] = int64(next)
	}
	return true
}

// expects reports whether an offset is of the round and the log is without a gap before.
func (c *consumer) expects(partition int32, offset int64) bool {
	at, mine := c.at[partition]
	if c.rebalanced || !mine || c.rewinds.stale(c.round) {
		return false
	}
	cut := offset < at || offset > at && c.isCut(partition, at)
	if cut {
		c.rewinds.tell(rewind.Cut{Round: c.round.number})
	}
	return !cut
}

// isCut reports whether the log begins behind an offset to read. Transactions leave gaps: it is asked once a second.
func (c *consumer) isCut(partition int32, offset int64) (cut bool) {
	c.cutLog.Do(func() {
		start, _, err := c.client.QueryWatermarkOffsets(c.topic, partition, int(cutTimeout.Milliseconds()))
		cut = err == nil && start > offset
	})
	return cut
}

// logs tells a rewind of all partitions. life is how far back order ids are known, half that of the shortest.
func (c *consumer) logs(ctx context.Context, life, half time.Duration) (map[int32]rewind.Log, error) {
	all, err := c.partitions(ctx)
	now, at := time.Now(), [4]map[int32]int64{}
	for i, spec := range []kafka.OffsetSpec{kafka.First, kafka.End, kafka.Since(now.Add(-life)), kafka.Since(now.Add(-half))} {
		if err == nil {
			at[i], err = c.client.OffsetsOf(ctx, all, spec, kafka.ReadCommitted)
		}
	}
	of, err := c.committedOf(ctx, all, err)
	for p, l := range of {
		l.Start, l.End, l.LifeBack, l.HalfLifeBack = at[0][p], at[1][p], at[2][p], at[3][p]
		if l.LifeBack < 0 { // no record is so late
			l.LifeBack = l.End
		}
		if l.HalfLifeBack < 0 {
			l.HalfLifeBack = l.End
		}
		of[p] = l
	}
	return of, err
}

// committedLogs tells what the group has committed, without offsets: a request for those waits behind a fetch.
func (c *consumer) committedLogs(ctx context.Context) (map[int32]rewind.Log, error) {
	all, err := c.partitions(ctx)
	return c.committedOf(ctx, all, err)
}

func (c *consumer) partitions(ctx context.Context) ([]kafka.TopicPartition, error) {
	n, err := c.client.Partitions(ctx, c.topic)
	if err != nil || n == 0 {
		return nil, errors.Join(err, errNoTopic)
	}
	all := make([]kafka.TopicPartition, n)
	for i := range all {
		all[i] = kafka.On(c.topic, int32(i)) // #nosec G115 -- a partition
	}
	return all, nil
}

// committedOf tells what the group has committed, unless there was an error before.
func (c *consumer) committedOf(ctx context.Context, all []kafka.TopicPartition, err error) (map[int32]rewind.Log, error) {
	topic, of := "", make(map[int32]rewind.Log, len(all))
	if err == nil {
		topic, err = c.client.TopicID(ctx, c.topic)
	}
	committed, err := c.committed(all, err)
	for p, at := range committed {
		l := rewind.Log{Topic: topic, Committed: int64(at.Offset), Noted: kafka.NoteOf(at).Positions}
		if !kafka.NoteOf(at).Of(topic) {
			l.Committed = -1
		}
		of[p] = l
	}
	return of, err
}

var errNoTopic = errors.New("the command topic has no partition") // tells that the command topic is not there (yet)

// keepsPositions reports whether masters have them, noted beside offsets: else a master without is not damaged.
func (c *consumer) keepsPositions() bool { return c.rewinds.round.Load().number > 0 }

// committed returns what the group has committed, unless there was an error before.
func (c *consumer) committed(of []kafka.TopicPartition, err error) (offsets map[int32]kafka.TopicPartition, _ error) {
	if err != nil {
		return nil, err
	}
	found, err := c.client.Committed(of, int(askTimeout.Milliseconds()))
	offsets = make(map[int32]kafka.TopicPartition, len(of))
	for i := 0; err == nil && i < len(found); i++ {
		offsets[found[i].Partition], err = found[i], found[i].Error
	}
	if err != nil {
		return nil, fmt.Errorf("committed offsets of %s: %w", c.topic, err)
	}
	return offsets, nil
}
