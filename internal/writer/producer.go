package writer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"golang.org/x/time/rate"
)

// flushTimeout is how long queued updates may take when the writer stops.
const flushTimeout = 5 * time.Second

// purgeTimeout is how long librdkafka may take to report purged messages.
const purgeTimeout = time.Second

// message is one update on its way to its board's topic.
type message struct {
	topic string
	key   []byte // the member
	value []byte
}

// producer sends updates to Kafka and waits for their acknowledgement. It is safe
// for concurrent use.
type producer struct {
	conf    *kafka.ConfigMap
	topics  *topics
	metrics *metrics
	log     *slog.Logger

	// mu is read-locked while a client is in use and locked while it is replaced or
	// closed, because a closed librdkafka handle must not be used.
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

// setLogin has the client, and those that replace it, log in with a new user name and
// password.
func (p *producer) setLogin(username, password string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client == nil {
		return nil
	}
	return errors.Join(p.conf.SetKey("sasl.username", username), p.conf.SetKey("sasl.password", password),
		p.client.SetSaslCredentials(username, password))
}

// close flushes queued messages, for a limited time, and closes the client.
func (p *producer) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeClient(flushTimeout)
}

// closeClient closes the client. Messages that can't be sent in time are reported to
// their senders as failed. The caller holds mu.
func (p *producer) closeClient(flush time.Duration) {
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

// renew replaces a client after a fatal error, which librdkafka reports when it has
// lost track of what an idempotent producer has sent. Senders retry what was queued.
func (p *producer) renew(used *kafka.Producer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client == nil || p.client != used || p.client.GetFatalError() == nil {
		return nil // closed, replaced by another caller, or without a fatal error
	}
	p.closeClient(0)
	return p.open()
}

// send makes one attempt and returns once Kafka has acknowledged all messages. After
// an error, rest holds the messages whose acknowledgement is missing.
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

// enqueue passes messages to librdkafka until it rejects one. queued of them will be
// reported on the channel, whose capacity is for all, so that librdkafka never
// blocks if send stops reading.
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

// report records the delivery of one message and returns its error.
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

// forgetIfGone makes the next attempt check for the topic and create it again.
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

// logLimit allows one log line a second of one kind; metrics count every event.
func logLimit() rate.Sometimes { return rate.Sometimes{Interval: time.Second} }

// drainLogs forwards librdkafka's log lines until its client is closed.
func drainLogs(log *slog.Logger, lines <-chan kafka.LogEvent) {
	for line := range lines {
		level := slog.LevelDebug
		if line.Level <= 4 { // syslog's warning, error and worse
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, line.Message, "client", line.Name, "fac", line.Tag)
	}
}

// drainEvents logs the errors of a producer that concern no message, until it is
// closed.
func drainEvents(log *slog.Logger, events <-chan kafka.Event) {
	limit := logLimit()
	for ev := range events {
		if err, ok := ev.(kafka.Error); ok {
			limit.Do(func() { log.Warn("kafka producer", "err", err) })
		}
	}
}
