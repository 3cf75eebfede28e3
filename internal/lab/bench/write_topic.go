package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache"
	"rankcache/wire"
)

// writeGroup is the writer's consumer group.
const writeGroup = "bench-write"

// writeTopic sends commands by way of the command topic.
type writeTopic struct {
	client *kgo.Client
	redis  *redis.Client
	sent   map[rankcache.BoardID]uint64
}

func newWriteTopic(kafka string, client *redis.Client) (*writeTopic, error) {
	producer, err := kgo.NewClient(kgo.SeedBrokers(kafka), kgo.DefaultProduceTopic(wire.DefaultNames().Commands), kgo.MaxBufferedRecords(1<<20),
		kgo.UnknownTopicRetries(-1)) // the writer makes the topic
	return &writeTopic{producer, client, make(map[rankcache.BoardID]uint64)}, err
}

// send returns once the boards have the changes of all commands: n each, or in turns one.
func (t *writeTopic) send(ctx context.Context, commands [][]byte, n int, kind *writeKind) error {
	records := make([]*kgo.Record, len(commands))
	for i, command := range commands {
		records[i] = &kgo.Record{Value: command}
	}
	if err := t.client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("send commands to kfake: %w", err)
	}
	for i, board := range kind.boards {
		changes := n
		if kind.turns {
			changes = (n + len(kind.boards) - 1 - i) / len(kind.boards)
		}
		if t.sent[board] += uint64(changes); changes == 0 {
			continue
		}
		if err := t.await(ctx, board); err != nil {
			return err
		}
	}
	return nil
}

// awaitRead returns once the writer has committed all records of the topic.
func (t *writeTopic) awaitRead(ctx context.Context) error {
	for {
		left, err := t.lag(ctx)
		if err != nil {
			return fmt.Errorf("lag of the writer: %w", err)
		}
		if left <= 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// lag returns how many records are not committed.
func (t *writeTopic) lag(ctx context.Context) (int64, error) {
	fetch, group, topic := kmsg.NewPtrOffsetFetchRequest(), kmsg.NewOffsetFetchRequestGroup(), kmsg.NewOffsetFetchRequestGroupTopic()
	topic.Topic, topic.Partitions = wire.DefaultNames().Commands, []int32{0}
	group.Group, group.Topics = writeGroup, append(group.Topics, topic)
	fetch.Groups = append(fetch.Groups, group)
	list, of, part := kmsg.NewPtrListOffsetsRequest(), kmsg.NewListOffsetsRequestTopic(), kmsg.NewListOffsetsRequestTopicPartition()
	part.Timestamp = -1 // the end
	of.Topic, of.Partitions = wire.DefaultNames().Commands, append(of.Partitions, part)
	list.Topics = append(list.Topics, of)
	committed, err := fetch.RequestWith(ctx, t.client)
	if err != nil {
		return 0, err
	}
	end, err := list.RequestWith(ctx, t.client)
	if err != nil {
		return 0, err
	}
	return end.Topics[0].Partitions[0].Offset - max(committed.Groups[0].Topics[0].Partitions[0].Offset, 0), nil
}

// await returns once the board has as many changes as were sent to it.
func (t *writeTopic) await(ctx context.Context, board rankcache.BoardID) error {
	for {
		value, err := t.redis.Get(ctx, wire.DefaultNames().MetaKey(board)).Result()
		if err != nil && err != redis.Nil {
			return fmt.Errorf("meta of board %s: %w", board, err)
		}
		if meta, err := wire.ParseMeta(value); err == nil && meta.Seq >= t.sent[board] {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
