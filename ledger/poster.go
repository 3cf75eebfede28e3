package ledger

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"rankcache/wire"
)

// Poster writes commands to the writers' topic. It is safe for concurrent use.
type Poster struct {
	client  *kafka.Producer
	topic   string
	drained chan struct{}

	mu       sync.Mutex
	settings kafka.ConfigMap // for other clients, with the newest login
}

// NewPoster returns a poster, which the caller closes. Settings are librdkafka's. It does not
// wait for the broker.
func NewPoster(settings map[string]string, topic string, log *slog.Logger) (*Poster, error) {
	given := kafka.ConfigMap{}
	for key, value := range settings {
		given[key] = value
	}
	conf := maps.Clone(given)
	// Acknowledged by all copies, in sequence, and soon given up: the next round posts them.
	maps.Copy(conf, kafka.ConfigMap{"enable.idempotence": true, "message.timeout.ms": 10000, "linger.ms": 5, "client.id": "rankcache-ledger", "go.logs.channel.enable": true})
	client, err := kafka.NewProducer(&conf)
	if err != nil {
		return nil, fmt.Errorf("kafka producer: %w", err)
	}
	p := &Poster{client: client, topic: topic, drained: make(chan struct{}), settings: given}
	go func() {
		defer close(p.drained)
		for line := range client.Logs() {
			log.Debug(line.Message, "client", line.Name, "fac", line.Tag)
		}
	}()
	go func() {
		for ev := range client.Events() {
			if err, ok := ev.(kafka.Error); ok {
				log.Debug("kafka producer", "err", err)
			}
		}
	}()
	return p, nil
}

// Close drops what is not acknowledged.
func (p *Poster) Close() {
	p.client.Close()
	<-p.drained
}

// Login has new connections log in with another user and password.
func (p *Poster) Login(username, password string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settings["sasl.username"], p.settings["sasl.password"] = username, password
	return p.client.SetSaslCredentials(username, password)
}

// Post writes commands and returns once all are acknowledged. Those of a board stay in
// sequence. An update has all that a command has; one without a board goes to the board that
// its class has at its time.
func (p *Poster) Post(ctx context.Context, commands []*wire.LedgerUpdate) error {
	messages := make([]*kafka.Message, len(commands))
	for i, u := range commands {
		key := string(u.Board)
		if key == "" {
			key = u.Class + string(wire.AppendDims(nil, u.Dims))
		}
		messages[i] = &kafka.Message{Key: []byte(key), Value: wire.AppendLedgerUpdate(nil, u)}
	}
	return p.send(ctx, messages)
}

// again posts changes that Redis has lost, past lateness and guards.
func (p *Poster) again(ctx context.Context, changes []*wire.Update) error {
	messages := make([]*kafka.Message, len(changes))
	for i, u := range changes {
		messages[i] = &kafka.Message{Key: []byte(u.Board), Value: wire.AppendUpdate(nil, u), Headers: []kafka.Header{{Key: wire.RedressHeader, Value: []byte("1")}}}
	}
	return p.send(ctx, messages)
}

func (p *Poster) send(ctx context.Context, messages []*kafka.Message) error {
	reports := make(chan kafka.Event, len(messages))
	for _, m := range messages {
		m.TopicPartition = kafka.TopicPartition{Topic: &p.topic, Partition: kafka.PartitionAny}
		if err := p.client.Produce(m, reports); err != nil {
			return fmt.Errorf("posting to %s: %w", p.topic, err)
		}
	}
	for range messages {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case ev := <-reports:
			if m, ok := ev.(*kafka.Message); ok && m.TopicPartition.Error != nil {
				return fmt.Errorf("posting to %s: %w: check that this user may write there", p.topic, m.TopicPartition.Error)
			}
		}
	}
	return nil
}
