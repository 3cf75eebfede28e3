package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"rankcache/internal/kafka"
)

// Drain reads topics from beginning to end with the settings of a [Runner] and
// drops the records: the speed limit of a replay, for benchmarks. It returns the
// number of records and the time from the assignment to the last.
func Drain(ctx context.Context, cfg Config, topics []string) (records int, took time.Duration, err error) {
	cfg, err = cfg.withDefaults()
	if err != nil {
		return 0, 0, err
	}
	c, err := newClient(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	parts, err := beginnings(ctx, c, topics)
	if err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	if err = c.assign(parts); err == nil {
		records, err = drain(ctx, c, parts)
	}
	return records, time.Since(begun), err
}

// beginnings returns the partitions of the topics with where they begin and end.
func beginnings(ctx context.Context, c *client, topics []string) (parts []*partition, err error) {
	infos, err := c.describe(ctx, topics)
	if err != nil {
		return nil, err
	}
	for _, info := range infos {
		if info.partitions == 0 {
			return nil, fmt.Errorf("topic %s does not exist", info.name)
		}
		parts = append(parts, newTopic(info, false).parts...)
	}
	found, err := c.offsets(ctx, parts)
	for _, p := range parts {
		p.setOffsets(found)
	}
	return parts, err
}

func drain(ctx context.Context, c *client, parts []*partition) (records int, err error) {
	open := make(ends)
	for _, p := range parts {
		if p.low < p.high {
			open[kafka.Partition{Topic: p.topic.name, Number: p.number}] = p.high
		}
	}
	into := make([]kafka.Record, batchItems)
	for len(open) > 0 && ctx.Err() == nil {
		n, other := c.poll(into)
		for _, r := range into[:n] {
			open.reach(r.Topic, r.Partition, r.Offset+1)
		}
		records += n
		switch ev := other.(type) {
		case kafka.Error:
			return records, ev
		case kafka.PartitionEOF:
			open.reach(*ev.Topic, ev.Partition, int64(ev.Offset))
		}
		if n == 0 && other == nil {
			time.Sleep(firstNap)
		}
	}
	return records, ctx.Err()
}

// ends are the ends of partitions that are not read yet.
type ends map[kafka.Partition]int64

func (open ends) reach(topic string, number int32, next int64) {
	if at := (kafka.Partition{Topic: topic, Number: number}); next >= open[at] {
		delete(open, at)
	}
}
