package measure

import (
	"context"
	"errors"
	"time"

	"rankcache/internal/kafka"
	"rankcache/replay"
)

// Drain reads a topic from its beginning to its end with the settings of a replay and drops the records: the speed
// limit of one. It returns the number of records and the time from the assignment to the last.
func Drain(ctx context.Context, brokers, topic string) (records int, took time.Duration, err error) {
	c, err := kafka.NewConsumer(nil, replay.ConsumerSettings(), kafka.Settings{"bootstrap.servers": brokers})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	n, err := c.Partitions(ctx, topic)
	if err != nil || n == 0 {
		return 0, 0, errors.Join(err, errors.New("topic "+topic+" does not exist or can't be read"))
	}
	first, err := c.Offsets(ctx, topic, n, kafka.First)
	if err != nil {
		return 0, 0, err
	}
	ends, err := c.Offsets(ctx, topic, n, kafka.End)
	if err != nil {
		return 0, 0, err
	}
	var parts []kafka.TopicPartition
	for p, end := range ends {
		if first[p] < end {
			parts = append(parts, kafka.TopicPartition{Topic: &topic, Partition: p, Offset: kafka.Offset(first[p])})
		} else {
			delete(ends, p)
		}
	}
	begun := time.Now()
	if err = c.Assign(parts); err == nil {
		records, err = drain(ctx, c, ends)
	}
	return records, time.Since(begun), err
}

// drain reads until each partition is at its end.
func drain(ctx context.Context, c *kafka.Consumer, ends map[int32]int64) (records int, err error) {
	reach := func(partition int32, next int64) {
		if end, open := ends[partition]; open && next >= end {
			delete(ends, partition)
		}
	}
	into := make([]kafka.Record, 256) // as a replay
	for len(ends) > 0 && ctx.Err() == nil {
		n, other := c.Records(into)
		for _, r := range into[:n] {
			reach(r.Partition, r.Offset+1)
		}
		records += n
		switch ev := other.(type) {
		case kafka.Error:
			return records, ev
		case kafka.PartitionEOF:
			reach(ev.Partition, int64(ev.Offset))
		}
		if n == 0 && other == nil {
			time.Sleep(time.Millisecond)
		}
	}
	return records, ctx.Err()
}
