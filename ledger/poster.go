package ledger

import (
	"context"
	"fmt"
	"log/slog"
	"maps"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"rankcache/wire"
)

// poster writes commands to the writers' topic.
type poster struct {
	client  *kafka.Producer
	topic   string
	drained chan struct{}
}

// newPoster returns a poster, which the caller closes. It does not wait for the broker.
func newPoster(settings map[string]string, topic string, log *slog.Logger) (*poster, error) {
	conf := kafka.ConfigMap{"go.logs.channel.enable": true}
	for key, value := range settings {
		conf[key] = value
	}
	// Acknowledged by all copies, in sequence, and soon given up: the next round posts them.
	maps.Copy(conf, kafka.ConfigMap{"enable.idempotence": true, "message.timeout.ms": 10000, "linger.ms": 5, "client.id": "rankcache-ledger"})
	client, err := kafka.NewProducer(&conf)
	if err != nil {
		return nil, fmt.Errorf("kafka producer: %w", err)
	}
	p := &poster{client: client, topic: topic, drained: make(chan struct{})}
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

func (p *poster) close() {
	p.client.Close()
	<-p.drained
}

// post writes changes as commands and returns once all are acknowledged. Those of a board
// stay in sequence. An update has all that a command has.
func (p *poster) post(ctx context.Context, changes []*wire.Update) error {
	reports := make(chan kafka.Event, len(changes))
	for _, u := range changes {
		m := &kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &p.topic, Partition: kafka.PartitionAny}, Key: []byte(u.Board),
			Value: wire.AppendUpdate(nil, u), Headers: []kafka.Header{{Key: wire.RedressHeader, Value: []byte("1")}}}
		if err := p.client.Produce(m, reports); err != nil {
			return fmt.Errorf("posting lost changes to %s: %w", p.topic, err)
		}
	}
	for range changes {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case ev := <-reports:
			if m, ok := ev.(*kafka.Message); ok && m.TopicPartition.Error != nil {
				return fmt.Errorf("posting lost changes to %s: %w: check that the ledger may write there", p.topic, m.TopicPartition.Error)
			}
		}
	}
	return nil
}
