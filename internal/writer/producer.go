package writer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// flushTimeout is how long updates of callers that went away may still take
// when the writer stops.
const flushTimeout = 5 * time.Second

// purgeTimeout is how long librdkafka may take to report what was thrown away.
const purgeTimeout = time.Second

// message is one update on its way to its board's topic.
type message struct {
	topic string
	key   []byte // the member
	value []byte
}

// producer hands updates to Kafka and waits until they are acknowledged. It may
// be used concurrently.
type producer struct {
	conf    *kafka.ConfigMap
	topics  *topics
	metrics *metrics
	log     *slog.Logger

	// mu is held for reading while a client is being used and for writing while
	// it is replaced or closed: librdkafka's handle must not be used after that.
	mu     sync.RWMutex
	client *kafka.Producer    // nil once closed
	admin  *kafka.AdminClient // shares the client's connections
	drains sync.WaitGroup     // goroutines that read the client's channels
}

var errClosed = errors.New("the writer is stopping")

// newProducer returns a producer with a running client, which the caller closes.
func newProducer(conf *kafka.ConfigMap, t *topics, m *metrics, log *slog.Logger) (*producer, error) {
	p := &producer{conf: conf, topics: t, metrics: m, log: log}
	return p, p.open()
}

// open starts a client. The caller holds mu, or is alone.
func (p *producer) open() (err error) {
	if p.client, err = kafka.NewProducer(p.conf); err != nil {
		return fmt.Errorf("kafka producer: %w", err)
	}
	if p.admin, err = kafka.NewAdminClientFromProducer(p.client); err != nil {
		p.client.Close()
		p.client = nil
		return fmt.Errorf("kafka admin: %w", err)
	}
	logs, events := p.client.Logs(), p.client.Events()
	p.drains.Go(func() { drainLogs(p.log, logs) })
	p.drains.Go(func() { drainEvents(p.log, events) })
	return nil
}

// close lets what is queued go out, for a while, and ends the client.
func (p *producer) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut(flushTimeout)
}

// shut ends the client. What could not go out in time is reported as failed to
// those that wait for it.
func (p *producer) shut(flush time.Duration) {
	if p.client == nil {
		return
	}
	if p.client.Flush(int(flush.Milliseconds())) > 0 {
		_ = p.client.Purge(kafka.PurgeQueue | kafka.PurgeInFlight)
		p.client.Flush(int(purgeTimeout.Milliseconds()))
	}
	p.admin.Close()
	p.client.Close()
	p.drains.Wait()
	p.client = nil
}

// renew replaces a client that librdkafka has given up for good, as it does when
// it can't tell any more what an idempotent producer has sent. What was queued
// is sent again by those that wait for it.
func (p *producer) renew(used *kafka.Producer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client == nil || p.client != used || p.client.GetFatalError() == nil {
		return nil // closed, replaced by another caller, or not broken
	}
	p.shut(0)
	return p.open()
}

// send returns once Kafka has acknowledged all messages. One attempt: after an
// error some may be acknowledged and others not, and rest returns those that
// are not known to be.
func (p *producer) send(ctx context.Context, messages []message) (rest []message, err error) {
	reports, client, queued, err := p.enqueue(ctx, messages)
	acked := make([]bool, len(messages))
	for range queued {
		select {
		case <-ctx.Done():
			return unacked(messages, acked), context.Cause(ctx)
		case ev := <-reports:
			if failed := p.report(ev, messages, acked); failed != nil {
				err = failed
			}
		}
	}
	if err != nil {
		err = errors.Join(err, p.renew(client))
	}
	return unacked(messages, acked), err
}

// enqueue gives messages to librdkafka until it refuses one. queued of them
// will be reported on the channel, which has room for all, so that nobody is
// held up if we stop reading.
func (p *producer) enqueue(ctx context.Context, messages []message) (reports chan kafka.Event, client *kafka.Producer, queued int, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.client == nil {
		return nil, nil, 0, errClosed
	}
	names := make([]string, len(messages))
	for i := range messages {
		names[i] = messages[i].topic
	}
	if err = p.topics.ensure(ctx, p.admin, names); err != nil {
		return nil, nil, 0, err
	}
	reports = make(chan kafka.Event, len(messages))
	for i := range messages {
		m := &messages[i]
		err = p.client.Produce(&kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &m.topic, Partition: kafka.PartitionAny},
			Key: m.key, Value: m.value, Opaque: i}, reports)
		if err != nil {
			p.forgetIfGone(m.topic, err)
			return reports, p.client, i, fmt.Errorf("producing to %s: %w", m.topic, err)
		}
	}
	return reports, p.client, len(messages), nil
}

// report notes the fate of one message and returns its error.
func (p *producer) report(ev kafka.Event, messages []message, acked []bool) error {
	m, ok := ev.(*kafka.Message)
	if !ok {
		return nil
	}
	i, _ := m.Opaque.(int)
	err := m.TopicPartition.Error
	if err == nil {
		acked[i] = true
		p.metrics.published.Inc()
		return nil
	}
	p.forgetIfGone(messages[i].topic, err)
	return fmt.Errorf("producing to %s: %w", messages[i].topic, err)
}

// forgetIfGone makes the next attempt look for the topic, and make it again.
func (p *producer) forgetIfGone(topic string, err error) {
	e, _ := errors.AsType[kafka.Error](err)
	switch e.Code() {
	case kafka.ErrUnknownTopicOrPart, kafka.ErrUnknownTopic, kafka.ErrUnknownPartition:
		p.topics.forget(topic)
	}
}

func unacked(messages []message, acked []bool) (rest []message) {
	for i, ok := range acked {
		if !ok {
			rest = append(rest, messages[i])
		}
	}
	return rest
}
