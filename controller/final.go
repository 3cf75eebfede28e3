package controller

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/kafka"
	"rankcache/rooms"
	"rankcache/wire"
)

//go:embed extend.lua
var extendSource string

var extendScript = redis.NewScript(wire.Script(extendSource))

// Finalizer makes the finals of boards whose class has a ledger.
type Finalizer interface {
	// Final makes the final of a closed board, or finds the one that is there, and returns its record on the topic of
	// finals, nil if another call has it: shards have one final together. After an error it is called again.
	Final(ctx context.Context, board rankcache.BoardID) (record []byte, err error)
}

func (l leading) wantsFinal(c *rooms.Class) bool {
	return l.opts.Finalizer != nil && c != nil && c.Ledger
}

func (l leading) finish(ctx context.Context, c *rooms.Class, b rankcache.BoardID) error {
	ctx, cancel := context.WithTimeout(ctx, finalTimeout)
	defer cancel()
	record, err := l.opts.Finalizer.Final(ctx, b)
	if err == nil && record != nil {
		err = l.kafka.publish(ctx, l.opts.Names.Finals, c.WholeOf(b), record)
	}
	return err
}

// extend moves the expiry of a board without final on by its class's keep, when less than half of that is left.
func (l leading) extend(ctx context.Context, e ended) error {
	now := l.now()
	if now.Before(e.over.Add(e.class.Keep / 2)) {
		return nil
	}
	meta, found, err := metaOf(l.opts.Redis.Get(ctx, l.opts.Names.MetaKey(e.board)))
	if err != nil || !found || meta.Expires == 0 || int64(meta.Expires) > now.Add(e.class.Keep/2).UnixMilli() { // #nosec G115 -- milliseconds
		return err
	}
	names := l.opts.Names
	keys := []string{names.MetaKey(e.board), names.BoardKey(e.board)}
	for _, c := range wire.Companions() {
		keys = append(keys, names.CompanionKey(e.board, c))
	}
	for i := range int(meta.Buckets) {
		keys = append(keys, names.OrdersKey(e.board, 0, i), names.OrdersKey(e.board, 1, i))
	}
	until := now.Add(e.class.Keep)
	l.log.Warn("the expiry of a board is postponed: its final is missing", "board", e.board, "until", until)
	return extendScript.Run(ctx, l.opts.Redis, keys, until.UnixMilli()).Err()
}

// finalsRetention is as long as that of the ledger's topic, in milliseconds.
const finalsRetention = "2592000000" // 30 days

// publish appends a record to the topic of finals, which it makes if it is missing.
func (k *kafkaClient) publish(ctx context.Context, topic string, b rankcache.BoardID, record []byte) error {
	if !k.finalsMade {
		spec := kafka.TopicSpec{Topic: topic, NumPartitions: 1, Config: map[string]string{"retention.ms": finalsRetention}}
		if _, err := k.producer.Make(ctx, []kafka.TopicSpec{spec}); err != nil {
			return err
		}
		k.finalsMade = true
	}
	at := kafka.On(topic, kafka.PartitionAny)
	if _, err := k.producer.Send(ctx, &kafka.Message{TopicPartition: at, Key: []byte(b), Value: record}); err != nil {
		return fmt.Errorf("publish to %s: %w", topic, err)
	}
	return nil
}
