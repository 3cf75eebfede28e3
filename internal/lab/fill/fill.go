// Package fill writes what a writer would have written, straight into Kafka and
// Redis, for the demo and the benchmarks.
package fill

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache/wire"
)

// Topic writes the updates of one board to its topic, for the demo and the
// benchmarks. It is a client of its own, so that what is shown is not shown by
// the code that made it.
type Topic struct {
	Client *kgo.Client
	topic  string
	failed atomic.Pointer[error]
}

// NewTopic makes the topic and returns the client that fills it.
func NewTopic(ctx context.Context, brokers, topic string, partitions int) (*Topic, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers), kgo.DefaultProduceTopic(topic), kgo.MaxBufferedRecords(100_000),
		kgo.ProducerLinger(20*time.Millisecond)) // full batches, as a busy producer makes
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	if err := CreateTopic(ctx, client, topic, partitions); err != nil {
		client.Close()
		return nil, err
	}
	return &Topic{Client: client, topic: topic}, nil
}

// Put queues one update, keyed by its member. It blocks while too many are queued.
func (f *Topic) Put(u *wire.Update) error {
	record := &kgo.Record{Key: []byte(u.Member), Value: wire.AppendUpdate(nil, u)}
	f.Client.Produce(context.Background(), record, func(_ *kgo.Record, err error) {
		if err != nil {
			f.failed.CompareAndSwap(nil, &err)
		}
	})
	if err := f.failed.Load(); err != nil {
		return fmt.Errorf("produce to %s: %w", f.topic, *err)
	}
	return nil
}

// Flush returns once everything is acknowledged.
func (f *Topic) Flush(ctx context.Context) error {
	if err := f.Client.Flush(ctx); err != nil {
		return fmt.Errorf("produce to %s: %w", f.topic, err)
	}
	if err := f.failed.Load(); err != nil {
		return fmt.Errorf("produce to %s: %w", f.topic, *err)
	}
	return nil
}

// Close ends the client.
func (f *Topic) Close() { f.Client.Close() }

// CreateTopic makes a topic, and returns when the broker has made it.
func CreateTopic(ctx context.Context, client *kgo.Client, topic string, partitions int) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = topic, int32(partitions), -1
	req.Topics, req.TimeoutMillis = append(req.Topics, t), 10_000
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	for _, t := range resp.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return fmt.Errorf("create topic %s: %w", topic, err)
		}
	}
	return nil
}

// DeleteTopic deletes a topic, if it is there.
func DeleteTopic(ctx context.Context, brokers, topic string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers))
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	defer client.Close()
	req := kmsg.NewPtrDeleteTopicsRequest()
	t := kmsg.NewDeleteTopicsRequestTopic()
	t.Topic = kmsg.StringPtr(topic)
	req.TopicNames, req.Topics, req.TimeoutMillis = []string{topic}, append(req.Topics, t), 10_000
	if _, err := req.RequestWith(ctx, client); err != nil {
		return fmt.Errorf("delete topic %s: %w", topic, err)
	}
	return nil
}
