package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"rankcache/internal/kafka"
	"rankcache/wire"
)

const (
	callTimeout  = 30 * time.Second // bounds one request to Kafka
	deleteAtOnce = 100              // how many topics one request deletes
	timesEvery   = 10 * time.Minute
)

type kafkaClient struct {
	producer *kafka.Producer
	offsets  *kafka.Consumer // reads what the writers' group has committed
	names    wire.Names
	group    string
	now      func() time.Time
	margin   time.Duration // ClockMargin, except in tests
	log      *slog.Logger
	timesLog rate.Sometimes

	finalsMade bool // the topic of finals is there
}

// marks tell how far the command topic was at a time.
type marks struct {
	at   time.Time
	next []kafka.Offset // of each partition: the records before it arrived before, the others at this time or later
}

func openKafka(o Options) (*kafkaClient, error) {
	ours := kafka.Settings{"client.id": "rankcache-controller"}
	c, err := kafka.NewGroup(kafka.Debug(o.Log), o.Group, ours, o.Kafka)
	if err != nil {
		return nil, err
	}
	ours["message.timeout.ms"] = "20000"
	p, err := kafka.NewProducer(kafka.Debug(o.Log), ours, o.Kafka, kafka.Settings{"acks": "all",
		"enable.idempotence": "false"}) // an idempotent producer may not return the offset of what it sent again
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &kafkaClient{producer: p, offsets: c, names: o.Names, group: o.Group, now: o.Now, margin: ClockMargin, log: o.Log,
		timesLog: rate.Sometimes{Interval: timesEvery}}, nil
}

func (k *kafkaClient) close() {
	k.producer.Drop() // a marker that is lost is appended again
	k.producer.Close()
	_ = k.offsets.Close() // it has nothing to leave or commit
}

func (k *kafkaClient) setLogin(username, password string) error {
	return errors.Join(k.producer.SetSaslCredentials(username, password), k.offsets.SetSaslCredentials(username, password))
}

// mark appends a marker to each partition of the command topic and returns once Kafka has
// acknowledged all and none before a time can be appended any more. It returns nil while
// the broker's clock is behind that time. Without the topic there is nothing to wait for.
func (k *kafkaClient) mark(ctx context.Context, until time.Time) (*marks, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	m := &marks{at: k.now().Add(-k.margin)}
	n, err := k.producer.Partitions(ctx, k.names.Commands)
	if err != nil || n == 0 {
		return m, err
	}
	if m.next, err = k.append(ctx, n); err != nil {
		return nil, fmt.Errorf("append markers to %s: %w", k.names.Commands, err)
	}
	if !k.brokersTime(ctx) {
		return m, nil // a command arrives when it is polled: those behind the markers, after they were appended
	}
	m.at = until
	m.next, err = k.first(ctx, n, until)
	if err != nil || slices.Contains(m.next, kafka.OffsetEnd) {
		return nil, err
	}
	return m, nil
}

// append appends a marker to each of n partitions, and returns the offsets behind them.
func (k *kafkaClient) append(ctx context.Context, n int) ([]kafka.Offset, error) {
	markers := make([]*kafka.Message, n)
	for i := range markers {
		markers[i] = &kafka.Message{TopicPartition: kafka.On(k.names.Commands, int32(i)), Key: []byte("rankcache-controller"), Value: wire.Marker()}
	}
	acked, err := k.producer.Send(ctx, markers...)
	if err != nil {
		return nil, err
	}
	next := make([]kafka.Offset, n)
	for _, m := range acked {
		next[m.TopicPartition.Partition] = m.TopicPartition.Offset + 1
	}
	return next, nil
}

// brokersTime reports whether the broker dates the records of the command topic.
func (k *kafkaClient) brokersTime(ctx context.Context) bool {
	answer, err := k.producer.Settings(ctx, k.names.Commands)
	kind := ""
	if err == nil {
		kind = answer[0].Config["message.timestamp.type"].Value
	}
	if kind != "LogAppendTime" {
		k.timesLog.Do(func() {
			k.log.Warn("boards are closed by the controller's clock: set message.timestamp.type=LogAppendTime on the command topic, and let the controller describe its settings",
				"topic", k.names.Commands, "is", kind, "err", err)
		})
	}
	return kind == "LogAppendTime"
}

// first returns each partition's first offset appended at a time or later, OffsetEnd if there is none.
func (k *kafkaClient) first(ctx context.Context, n int, at time.Time) ([]kafka.Offset, error) {
	found, err := k.producer.Offsets(ctx, k.names.Commands, n, kafka.Since(at))
	if err != nil {
		return nil, err
	}
	first := slices.Repeat([]kafka.Offset{kafka.OffsetEnd}, n)
	for p, offset := range found {
		if offset >= 0 {
			first[p] = kafka.Offset(offset)
		}
	}
	return first, nil
}

// committed returns the offsets that the writers have committed, by partition; a negative one is none.
func (k *kafkaClient) committed(ctx context.Context, m *marks) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return k.offsets.GroupOffsets(ctx, k.group, k.names.Commands, len(m.next))
}

func (k *kafkaClient) topicID(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	id, err := k.producer.TopicID(ctx, k.names.Commands)
	if kafka.Code(err) == kafka.ErrUnknownTopicOrPart {
		return "", nil
	}
	return id, err
}

func (k *kafkaClient) topics(ctx context.Context) (names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	all, _, err := k.producer.Topics(ctx)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	for _, name := range all {
		if name == k.names.Commands || name == k.names.Refused || name == k.names.Finals || name == k.names.Ledger { // whatever the prefixes are
			continue
		}
		if strings.HasPrefix(name, k.names.UpdatePrefix) || strings.HasPrefix(name, k.names.ClassPrefix) {
			names = append(names, name)
		}
	}
	return names, nil
}

func (k *kafkaClient) remove(ctx context.Context, names []string) (gone []string, failed error) {
	for some := range slices.Chunk(names, deleteAtOnce) {
		results, err := k.removeSome(ctx, some)
		if err != nil {
			return gone, fmt.Errorf("delete topics: %w", err)
		}
		for _, r := range results {
			switch r.Error.Code() {
			case kafka.ErrNoError, kafka.ErrUnknownTopicOrPart:
				gone = append(gone, r.Topic)
			default:
				failed = fmt.Errorf("delete topic %s: %w: check that the controller may delete topics", r.Topic, r.Error)
			}
		}
	}
	return gone, failed
}

func (k *kafkaClient) removeSome(ctx context.Context, names []string) ([]kafka.TopicResult, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return k.producer.Delete(ctx, names)
}
