package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"rankcache/internal/kafka"
	"rankcache/ledger"
	"rankcache/wire"
)

// Poster writes commands to the writers' topic. It is safe for concurrent use.
type Poster struct {
	client *kafka.Producer
	topic  string

	mu       sync.Mutex
	settings kafka.Settings // for other clients, with the newest login
}

// NewPoster returns a poster, which the caller closes. Settings are librdkafka's. It does not wait for the broker.
func NewPoster(settings map[string]string, topic string, log *slog.Logger) (*Poster, error) {
	// Acknowledged by all copies, in sequence, and soon given up: the next round posts them.
	ours := kafka.Settings{"enable.idempotence": "true", "message.timeout.ms": "10000", "linger.ms": "5", "client.id": "rankcache-ledger"}
	client, err := kafka.NewProducer(kafka.Debug(log), settings, ours)
	if err != nil {
		return nil, err
	}
	return &Poster{client: client, topic: topic, settings: maps.Clone(settings)}, nil
}

// Close drops what is not acknowledged.
func (p *Poster) Close() { p.client.Close() }

// Login has new connections log in with another user and password.
func (p *Poster) Login(username, password string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settings["sasl.username"], p.settings["sasl.password"] = username, password
	return p.client.SetSaslCredentials(username, password)
}

// Post writes commands and returns once all are acknowledged. Those of a board stay in sequence. An update has all that
// a command has; one without a board goes to the board that its class has at its time.
func (p *Poster) Post(ctx context.Context, commands []*wire.LedgerUpdate) error {
	messages := make([]*kafka.Message, len(commands))
	for i, u := range commands {
		key := string(u.Board)
		if key == "" {
			key = u.Class + string(wire.AppendDims(nil, u.Dims))
		}
		messages[i] = &kafka.Message{TopicPartition: kafka.On(p.topic, kafka.PartitionAny), Key: []byte(key), Value: wire.AppendLedgerUpdate(nil, u)}
	}
	_, err := p.client.Send(ctx, messages...)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("posting to %s: %w: check that this user may write there", p.topic, err)
}

// Reached waits until the ledger has all commands of now: see [ledger.Reached].
func (p *Poster) Reached(ctx context.Context, store *ledger.Store, writers, topic string, patience time.Duration) error {
	p.mu.Lock()
	group, err := kafka.NewGroup(nil, writers, p.settings)
	p.mu.Unlock()
	if err != nil {
		return err
	}
	defer group.Close()
	return ledger.Reached(ctx, group, store, ledger.Feed{Commands: p.topic, Writers: writers, Ledger: topic}, patience)
}
