package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/wire"
)

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

// send returns once the boards have the changes of all commands, n each.
func (t *writeTopic) send(ctx context.Context, commands [][]byte, n int, boards []rankcache.BoardID) error {
	records := make([]*kgo.Record, len(commands))
	for i, command := range commands {
		records[i] = &kgo.Record{Value: command}
	}
	if err := t.client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("send commands to kfake: %w", err)
	}
	for _, board := range boards {
		t.sent[board] += uint64(n)
		if err := t.await(ctx, board); err != nil {
			return err
		}
	}
	return nil
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
