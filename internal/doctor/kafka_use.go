package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"rankcache/internal/health"
	"rankcache/internal/kafka"
	"rankcache/wire"
)

// KafkaUse is what a process does in Kafka.
type KafkaUse struct {
	Group         string   // consumer group whose offsets it reads
	Reads, Writes string   // topics; "": none
	Ends          []string // topics of which it asks where they end
	Makes         []string // topics that it makes where they are missing, or that stand for those
	Replication   int      // of these; 0: the broker's
}

func (u KafkaUse) topics() []string {
	return slices.DeleteFunc(append([]string{u.Reads, u.Writes}, u.Ends...), func(name string) bool { return name == "" })
}

// TryKafka returns nil if Kafka lets its user do all that, as far as it tells without a change: a missing topic may be
// read and written. It connects anew. A refusal is a [*health.Refusal].
func TryKafka(ctx context.Context, brokers string, settings map[string]string, use KafkaUse) error {
	own := map[string]string{"group.id": use.Group}
	maps.Copy(own, settings)
	k, err := OpenKafka(brokers, own, wire.Names{}, "", nil, nil)
	if err != nil {
		return err
	}
	defer k.Close()
	for _, try := range []func(context.Context, KafkaUse) error{k.tryTopics, k.tryGroup, k.tryMaking} {
		if err := try(ctx, use); err != nil {
			return k.withLog(err)
		}
	}
	return nil
}

// withLog adds to an error that is no answer the last warning of the client's log, which has the reason.
func (k *Kafka) withLog(err error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, refused := errors.AsType[*health.Refusal](err); refused || k.lastLog == "" {
		return err
	}
	return fmt.Errorf("%s: %v", k.lastLog, err) // a deadline that has passed would hide it
}

func (k *Kafka) tryTopics(ctx context.Context, use KafkaUse) error {
	found, err := k.client.Rights(ctx, use.topics()...)
	if err != nil {
		return fmt.Errorf("describe topics: %w", err)
	}
	for _, t := range found {
		switch code := t.Error.Code(); {
		case code == kafka.ErrUnknownTopicOrPart:
			continue
		case code != kafka.ErrNoError:
			return refusal(fmt.Errorf("topic %s: %w", t.Name, t.Error))
		}
		for name, need := range map[string]kafka.Right{use.Reads: kafka.MayRead, use.Writes: kafka.MayWrite} {
			if may := t.AuthorizedOperations; t.Name == name && len(may) > 0 && !slices.Contains(may, need) { // an old broker tells none
				return &health.Refusal{Err: fmt.Errorf("topic %s: the user has no right to %s", name, need)}
			}
		}
	}
	return nil
}

func (k *Kafka) tryGroup(ctx context.Context, use KafkaUse) error {
	_, err := k.client.GroupOffsets(ctx, use.Group, use.topics()[0], 1)
	switch kafka.Code(err) {
	case kafka.ErrUnknownTopicOrPart, kafka.ErrUnknownPartition, kafka.ErrGroupIDNotFound:
		return nil
	}
	return refusal(err)
}

func (k *Kafka) tryMaking(ctx context.Context, use KafkaUse) error {
	var specs []kafka.TopicSpec
	for _, name := range use.Makes {
		specs = append(specs, kafka.TopicSpec{Topic: name, NumPartitions: 1, ReplicationFactor: use.Replication})
	}
	_, err := k.client.Make(ctx, specs, kafka.ValidateOnly)
	return refusal(err)
}

// refusal marks an error of a Kafka that refuses the user.
func refusal(err error) error {
	if kafka.Refused(err) {
		return &health.Refusal{Err: err}
	}
	return err
}
