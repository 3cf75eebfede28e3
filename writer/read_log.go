package writer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rankcache/internal/kafka"
	"rankcache/writer/internal/rewind"
)

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
