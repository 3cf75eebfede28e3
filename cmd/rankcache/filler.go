package main

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

// filler writes the updates of one board to its topic, for the demo and the
// benchmarks. It is a client of its own, so that what is shown is not shown by
// the code that made it.
type filler struct {
	client *kgo.Client
	topic  string
	failed atomic.Pointer[error]
}

// newFiller makes the topic and returns its filler.
func newFiller(ctx context.Context, brokers, topic string, partitions int) (*filler, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers), kgo.DefaultProduceTopic(topic), kgo.MaxBufferedRecords(100_000),
		kgo.ProducerLinger(20*time.Millisecond)) // full batches, as a busy producer makes
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	if err := createTopic(ctx, client, topic, partitions); err != nil {
		client.Close()
		return nil, err
	}
	return &filler{client: client, topic: topic}, nil
}

// put queues one update, keyed by its member. It blocks while too many are queued.
func (f *filler) put(u *wire.Update) error {
	record := &kgo.Record{Key: []byte(u.Member), Value: wire.AppendUpdate(nil, u)}
	f.client.Produce(context.Background(), record, func(_ *kgo.Record, err error) {
		if err != nil {
			f.failed.CompareAndSwap(nil, &err)
		}
	})
	if err := f.failed.Load(); err != nil {
		return fmt.Errorf("produce to %s: %w", f.topic, *err)
	}
	return nil
}

// flush returns once everything is acknowledged.
func (f *filler) flush(ctx context.Context) error {
	if err := f.client.Flush(ctx); err != nil {
		return fmt.Errorf("produce to %s: %w", f.topic, err)
	}
	if err := f.failed.Load(); err != nil {
		return fmt.Errorf("produce to %s: %w", f.topic, *err)
	}
	return nil
}

func (f *filler) close() { f.client.Close() }

func createTopic(ctx context.Context, client *kgo.Client, topic string, partitions int) error {
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

func deleteTopic(ctx context.Context, brokers, topic string) error {
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
