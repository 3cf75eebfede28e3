package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"golang.org/x/time/rate"
)

// Consumer reads topics, as a member of a group or by itself. Poll belongs to one goroutine.
type Consumer struct {
	*ck.Consumer
	Admin
	queue  *queue
	first  *firstBrokers
	drains sync.WaitGroup
}

// NewConsumer returns a consumer, whose threads run until Close. It does not wait for the broker.
func NewConsumer(log Log, layers ...Settings) (*Consumer, error) {
	conf := config(log, layers)
	client, err := ck.NewConsumer(conf)
	if err != nil {
		return nil, fmt.Errorf("kafka consumer: %w; check the kafka settings", err)
	}
	admin, err := ck.NewAdminClientFromConsumer(client)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("kafka admin client: %w", err), client.Close())
	}
	c := &Consumer{Consumer: client, Admin: Admin{admin}, queue: newQueue(client), first: newFirstBrokers(client, conf)}
	if lines := client.Logs(); log != nil {
		c.drains.Go(func() { log.drainLines(lines) })
	}
	return c, nil
}

// NewGroup returns a consumer that joins nothing, for [Consumer.GroupOffsets], which crash other clients of librdkafka.
func NewGroup(log Log, group string, layers ...Settings) (*Consumer, error) {
	return NewConsumer(log, append(layers, Settings{"group.id": group, "enable.auto.commit": "false"})...)
}

// Close leaves the group and ends the consumer. No other call may be running. [ErrNotClosed]: it did not end in time.
func (c *Consumer) Close() error {
	c.first.close()
	return inTime(func() error {
		err := c.Consumer.Close()
		c.drains.Wait()
		return err
	})
}

// ErrNotClosed reports that a consumer goes on in a thread of its own, and is in its group until its session ends.
var ErrNotClosed = errors.New("the client of Kafka has not ended in time")

// closeTime bounds the end of a consumer: librdkafka may wait for ever if its partitions change meanwhile
// (confluentinc/librdkafka issue 4527), and a process that stops must not.
const closeTime = 10 * time.Second

func inTime(end func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(closeTime):
		return fmt.Errorf("%w: %v", ErrNotClosed, closeTime)
	}
}

// Subscribe joins the group for a topic. rebalance, which may be nil, takes and gives up partitions; it runs in a poll.
func (c *Consumer) Subscribe(topic string, rebalance func(Event) error) error {
	if rebalance == nil {
		return c.Consumer.Subscribe(topic, nil)
	}
	return c.Consumer.Subscribe(topic, func(_ *ck.Consumer, ev Event) error { return rebalance(ev) })
}

// Poll returns the next event within some milliseconds, nil if there is none.
func (c *Consumer) Poll(ms int) Event {
	ev := c.Consumer.Poll(ms)
	c.first.note(ev)
	return ev
}

// Record polls for a time and returns a record, nil if there is none, or an error. The error of a partition comes with
// a message that has it; with enable.partition.eof so does [ErrPartitionEOF], with the next offset.
func (c *Consumer) Record(wait time.Duration) (*Message, error) {
	switch ev := c.Poll(int(wait.Milliseconds())).(type) {
	case *Message:
		return ev, ev.TopicPartition.Error
	case PartitionEOF:
		return &Message{TopicPartition: TopicPartition(ev)}, ck.NewError(ErrPartitionEOF, "", false)
	case Error:
		if !Follows(ev) {
			return nil, ev
		}
	}
	return nil, nil
}

// GroupOffsets returns the offsets that the consumer's group has committed of a topic's first n partitions, by
// partition; a negative one is none. One that is noted to be of an earlier topic of that name is none, too.
func (c *Consumer) GroupOffsets(ctx context.Context, group, topic string, n int) (map[int32]int64, error) {
	next := make(map[int32]int64, n)
	if n == 0 {
		return next, nil
	}
	at, err := c.Committed(partitionsOf(topic, n), remaining(ctx))
	id := ""
	if err == nil && slices.ContainsFunc(at, func(p TopicPartition) bool { return NoteOf(p).Topic != "" }) {
		id, err = c.TopicID(ctx, topic)
	}
	for i := 0; err == nil && i < len(at); i++ {
		p := at[i]
		if !NoteOf(p).Of(id) {
			p.Offset = OffsetInvalid
		}
		next[p.Partition], err = int64(p.Offset), p.Error
	}
	if err != nil {
		return nil, fmt.Errorf("offsets of the group %s: %w: check that this user may describe it", group, err)
	}
	return next, nil
}

// Producer writes to topics. It is safe for concurrent use.
type Producer struct {
	*ck.Producer
	Admin
	first  *firstBrokers
	drains sync.WaitGroup
}

// NewProducer returns a producer, whose threads run until Close. It does not wait for the broker.
func NewProducer(log Log, layers ...Settings) (*Producer, error) {
	conf := config(log, layers)
	(*conf)["go.events.channel.size"], (*conf)["go.produce.channel.size"] = 1000, 1 // of a million each they take 24 MB; reports have channels of their own
	client, err := ck.NewProducer(conf)
	if err != nil {
		return nil, fmt.Errorf("kafka producer: %w; check the kafka settings", err)
	}
	admin, err := ck.NewAdminClientFromProducer(client)
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("kafka admin client: %w", err)
	}
	p := &Producer{Producer: client, Admin: Admin{admin}, first: newFirstBrokers(client, conf)}
	lines, events := client.Logs(), client.Events()
	if log != nil {
		p.drains.Go(func() { log.drainLines(lines) })
	}
	p.drains.Go(func() { log.drainEvents(events, p.first.note) })
	return p, nil
}

// Send writes messages and returns Kafka's reports once all are acknowledged. The first failure ends it, as ctx does.
func (p *Producer) Send(ctx context.Context, messages ...*Message) (acked []*Message, err error) {
	reports := make(chan Event, len(messages)) // has room for all, so that librdkafka never waits
	for _, m := range messages {
		if err := p.Produce(m, reports); err != nil {
			return nil, err
		}
	}
	for range messages {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case ev := <-reports:
			report, ok := ev.(*Message)
			if !ok {
				return nil, fmt.Errorf("report %v", ev)
			}
			if report.TopicPartition.Error != nil {
				return nil, report.TopicPartition.Error
			}
			acked = append(acked, report)
		}
	}
	return acked, nil
}

// Drop gives up what is not acknowledged. Its senders are told.
func (p *Producer) Drop() { _ = p.Purge(ck.PurgeQueue | ck.PurgeInFlight) }

// Close ends the producer. No other call may be running.
func (p *Producer) Close() {
	p.first.close()
	p.Producer.Close()
	p.drains.Wait()
}

// Log takes the lines of a client's log, from one goroutine or two. Without one, nil, there is no log.
type Log func(level slog.Level, line string, args ...any)

// LogTo returns a Log that writes to another.
func LogTo(log *slog.Logger) Log {
	return func(level slog.Level, line string, args ...any) { log.Log(context.Background(), level, line, args...) }
}

// Debug returns a Log that writes all to another's debug level: the client's user logs its failures.
func Debug(log *slog.Logger) Log {
	return func(_ slog.Level, line string, args ...any) { log.Debug(line, args...) }
}

// drainLines logs librdkafka's lines until their client is closed.
func (l Log) drainLines(lines <-chan ck.LogEvent) {
	for line := range lines {
		level := slog.LevelDebug
		if line.Level <= 4 { // syslog's warning, error and worse
			level = slog.LevelWarn
		}
		l(level, line.Message, "client", line.Name, "fac", line.Tag)
	}
}

// drainEvents hands on what a producer tells, and logs the errors that concern no message, until it is closed.
func (l Log) drainEvents(events <-chan Event, note func(Event)) {
	limit := rate.Sometimes{Interval: time.Second}
	for ev := range events {
		note(ev)
		if err, ok := ev.(Error); ok && l != nil && !Follows(err) {
			limit.Do(func() { l(slog.LevelWarn, "kafka producer", "err", err) })
		}
	}
}
