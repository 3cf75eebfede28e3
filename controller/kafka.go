package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"golang.org/x/time/rate"

	"rankcache/wire"
)

const (
	// callTimeout bounds one request to Kafka.
	callTimeout = 30 * time.Second
	// deleteAtOnce is how many topics one request deletes.
	deleteAtOnce = 100
	timesEvery   = 10 * time.Minute
)

// kafkaClient is the controller's client of Kafka.
type kafkaClient struct {
	producer *kafka.Producer
	admin    *kafka.AdminClient // shares its connections
	// offsets reads what the writers' group has committed, and joins nothing. Asked by another
	// client for that, librdkafka crashes when the broker does not coordinate the group any more.
	offsets  *kafka.Consumer
	names    wire.Names
	group    string
	now      func() time.Time
	margin   time.Duration // ClockMargin, except in tests
	log      *slog.Logger
	timesLog rate.Sometimes
	drains   sync.WaitGroup

	finalsMade bool // the topic of finals is there
}

// marks tell how far the command topic was at a time.
type marks struct {
	at   time.Time
	next []kafka.Offset // of each partition: the records before it arrived before, the others at this time or later
}

func openKafka(o Options) (*kafkaClient, error) {
	conf := kafka.ConfigMap{"client.id": "rankcache-controller", "log.connection.close": "false", "enable.metrics.push": "false",
		"socket.keepalive.enable": "true", "message.timeout.ms": "20000", "go.logs.channel.enable": true}
	for key, value := range o.Kafka {
		conf[key] = value
	}
	reads := maps.Clone(conf)
	reads["group.id"], reads["enable.auto.commit"] = o.Group, false
	c, err := kafka.NewConsumer(&reads)
	if err != nil {
		return nil, fmt.Errorf("kafka consumer: %w", err)
	}
	conf["acks"], conf["enable.idempotence"] = "all", "false" // an idempotent producer may not return the offset of what it sent again
	p, err := kafka.NewProducer(&conf)
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("kafka producer: %w", err)
	}
	admin, err := kafka.NewAdminClientFromProducer(p)
	if err != nil {
		_ = c.Close()
		p.Close()
		return nil, fmt.Errorf("kafka admin client: %w", err)
	}
	k := &kafkaClient{producer: p, admin: admin, offsets: c, names: o.Names, group: o.Group, now: o.Now, margin: ClockMargin, log: o.Log,
		timesLog: rate.Sometimes{Interval: timesEvery}}
	for _, logs := range []chan kafka.LogEvent{p.Logs(), c.Logs()} {
		k.drains.Go(func() {
			for line := range logs {
				k.log.Debug(line.Message, "client", line.Name, "fac", line.Tag)
			}
		})
	}
	events := p.Events()
	k.drains.Go(func() {
		for ev := range events {
			k.log.Debug("kafka producer", "event", ev)
		}
	})
	return k, nil
}

func (k *kafkaClient) close() {
	_ = k.producer.Purge(kafka.PurgeQueue | kafka.PurgeInFlight) // a marker that is lost is appended again
	k.admin.Close()
	k.producer.Close()
	_ = k.offsets.Close() // it has nothing to leave or commit
	k.drains.Wait()
}

// keepLogin has the client log in with each new user name and password, until stop is
// called.
func (k *kafkaClient) keepLogin(ctx context.Context, login func(context.Context, func(username, password string) error)) (stop func()) {
	if login == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	set := func(username, password string) error {
		return errors.Join(k.producer.SetSaslCredentials(username, password), k.offsets.SetSaslCredentials(username, password))
	}
	go func() { defer close(ended); login(ctx, set) }()
	return func() { cancel(); <-ended }
}

// mark appends a marker to each partition of the command topic and returns once Kafka has
// acknowledged all and none before a time can be appended any more. It returns nil while
// the broker's clock is behind that time. Without the topic there is nothing to wait for.
func (k *kafkaClient) mark(ctx context.Context, until time.Time) (*marks, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	m := &marks{at: k.now().Add(-k.margin)}
	n, err := k.partitions(ctx)
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
	reports := make(chan kafka.Event, n)
	for i := range n {
		at := kafka.TopicPartition{Topic: &k.names.Commands, Partition: int32(i)}
		if err := k.producer.Produce(&kafka.Message{TopicPartition: at, Key: []byte("rankcache-controller"), Value: wire.Marker()}, reports); err != nil {
			return nil, err
		}
	}
	next := make([]kafka.Offset, n)
	for range n {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case ev := <-reports:
			report, ok := ev.(*kafka.Message)
			if !ok || report.TopicPartition.Error != nil {
				return nil, fmt.Errorf("report %v", ev)
			}
			next[report.TopicPartition.Partition] = report.TopicPartition.Offset + 1
		}
	}
	return next, nil
}

// brokersTime reports whether the broker dates the records of the command topic.
func (k *kafkaClient) brokersTime(ctx context.Context) bool {
	answer, err := k.admin.DescribeConfigs(ctx, []kafka.ConfigResource{{Type: kafka.ResourceTopic, Name: k.names.Commands}})
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

// first returns the first offset of each partition whose record was appended at a time or
// later, OffsetEnd if there is none.
func (k *kafkaClient) first(ctx context.Context, n int, at time.Time) ([]kafka.Offset, error) {
	ask := make(map[kafka.TopicPartition]kafka.OffsetSpec)
	for i := range n {
		ask[kafka.TopicPartition{Topic: &k.names.Commands, Partition: int32(i)}] = kafka.NewOffsetSpecForTimestamp(at.UnixMilli())
	}
	answer, err := k.admin.ListOffsets(ctx, ask)
	if err != nil {
		return nil, fmt.Errorf("offsets of %s at a time: %w", k.names.Commands, err)
	}
	found := slices.Repeat([]kafka.Offset{kafka.OffsetEnd}, n)
	for p, is := range answer.ResultInfos {
		switch {
		case is.Error.Code() != kafka.ErrNoError:
			return nil, fmt.Errorf("offset of %s at a time: %w", k.names.Commands, is.Error)
		case is.Offset >= 0:
			found[p.Partition] = is.Offset
		}
	}
	return found, nil
}

// partitions returns the number of partitions of the command topic, 0 if it is missing.
func (k *kafkaClient) partitions(ctx context.Context) (int, error) {
	md, err := k.admin.GetMetadata(&k.names.Commands, false, remaining(ctx))
	if err != nil {
		return 0, fmt.Errorf("metadata of %s: %w", k.names.Commands, err)
	}
	topic := md.Topics[k.names.Commands]
	switch topic.Error.Code() {
	case kafka.ErrNoError:
		return len(topic.Partitions), nil
	case kafka.ErrUnknownTopicOrPart:
		return 0, nil
	}
	return 0, fmt.Errorf("metadata of %s: %w", k.names.Commands, topic.Error)
}

// committed reports whether the writers have committed all markers.
func (k *kafkaClient) committed(ctx context.Context, m *marks) (bool, error) {
	if len(m.next) == 0 {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var ask []kafka.TopicPartition
	for i := range m.next {
		ask = append(ask, kafka.TopicPartition{Topic: &k.names.Commands, Partition: int32(i)})
	}
	at, err := k.offsets.Committed(ask, remaining(ctx))
	if err != nil {
		return false, fmt.Errorf("offsets of the group %s: %w", k.group, err)
	}
	passed := 0
	for _, p := range at {
		if p.Error != nil {
			return false, fmt.Errorf("offset of the group %s: %w", k.group, p.Error)
		}
		if p.Offset >= m.next[p.Partition] {
			passed++
		}
	}
	return passed == len(m.next), nil
}

// topics returns the names of the topics of boards.
func (k *kafkaClient) topics(ctx context.Context) (names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	md, err := k.admin.GetMetadata(nil, true, remaining(ctx))
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	for name := range md.Topics {
		if name == k.names.Commands || name == k.names.Refused || name == k.names.Finals || name == k.names.Ledger { // whatever the prefixes are
			continue
		}
		if strings.HasPrefix(name, k.names.UpdatePrefix) || strings.HasPrefix(name, k.names.ClassPrefix) {
			names = append(names, name)
		}
	}
	return names, nil
}

// remove deletes topics and returns those that are gone.
func (k *kafkaClient) remove(ctx context.Context, names []string) (gone []string, failed error) {
	for len(names) > 0 && ctx.Err() == nil {
		n := min(len(names), deleteAtOnce)
		results, err := k.removeSome(ctx, names[:n])
		if names = names[n:]; err != nil {
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
	return k.admin.DeleteTopics(ctx, names, kafka.SetAdminOperationTimeout(callTimeout))
}

// remaining returns the time until the deadline of ctx, in ms.
func remaining(ctx context.Context) int {
	deadline, _ := ctx.Deadline()
	return max(int(time.Until(deadline).Milliseconds()), 1)
}
