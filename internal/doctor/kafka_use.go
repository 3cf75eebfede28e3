package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"rankcache/internal/health"
	"rankcache/wire"
)

// KafkaUse is what a process does in Kafka.
type KafkaUse struct {
	Group         string   // consumer group whose offsets it reads
	Reads, Writes string   // topics; "": none
	Makes         []string // topics that it makes where they are missing, or that stand for those
	Replication   int      // of these; 0: the broker's
}

// TryKafka returns nil if Kafka answers and lets its user do all that, as far as it tells without a
// change: a topic that is missing may be read and written. It connects anew. If Kafka refuses the
// user, the error is a [*health.Refusal].
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
	answer, err := k.admin.DescribeTopics(ctx, kafka.NewTopicCollectionOfTopicNames(slices.DeleteFunc([]string{use.Reads, use.Writes}, func(name string) bool { return name == "" })),
		kafka.SetAdminOptionIncludeAuthorizedOperations(true))
	if err != nil {
		return fmt.Errorf("describe topics: %w", err)
	}
	for _, t := range answer.TopicDescriptions {
		switch code := t.Error.Code(); {
		case code == kafka.ErrUnknownTopicOrPart:
			continue
		case code != kafka.ErrNoError:
			return refusal("topic "+t.Name, t.Error)
		}
		for name, need := range map[string]kafka.ACLOperation{use.Reads: kafka.ACLOperationRead, use.Writes: kafka.ACLOperationWrite} {
			if may := t.AuthorizedOperations; t.Name == name && len(may) > 0 && !slices.Contains(may, need) { // an old broker tells none
				return &health.Refusal{Err: fmt.Errorf("topic %s: the user has no right to %s", name, need)}
			}
		}
	}
	return nil
}

func (k *Kafka) tryGroup(ctx context.Context, use KafkaUse) error {
	topic := cmp.Or(use.Reads, use.Writes)
	offsets, err := k.consumer.Committed([]kafka.TopicPartition{{Topic: &topic}}, remaining(ctx))
	if err == nil && len(offsets) > 0 {
		err = offsets[0].Error
	}
	switch codeOf(err) {
	case kafka.ErrNoError, kafka.ErrUnknownTopicOrPart, kafka.ErrUnknownPartition, kafka.ErrGroupIDNotFound: // err may be nil
		return nil
	}
	return refusal("offsets of group "+use.Group, err)
}

func (k *Kafka) tryMaking(ctx context.Context, use KafkaUse) error {
	if len(use.Makes) == 0 {
		return nil
	}
	var specs []kafka.TopicSpecification
	for _, name := range use.Makes {
		specs = append(specs, kafka.TopicSpecification{Topic: name, NumPartitions: 1, ReplicationFactor: use.Replication})
	}
	results, err := k.admin.CreateTopics(ctx, specs, kafka.SetAdminValidateOnly(true))
	if err != nil {
		return fmt.Errorf("ask whether topics may be made: %w", err)
	}
	for _, r := range results {
		if code := r.Error.Code(); code != kafka.ErrNoError && code != kafka.ErrTopicAlreadyExists {
			return refusal("make topic "+r.Topic, r.Error)
		}
	}
	return nil
}

// refusal returns an error with what was asked for.
func refusal(of string, err error) error {
	err = fmt.Errorf("%s: %w", of, err)
	switch codeOf(err) {
	case kafka.ErrTopicAuthorizationFailed, kafka.ErrGroupAuthorizationFailed, kafka.ErrClusterAuthorizationFailed, kafka.ErrSaslAuthenticationFailed, kafka.ErrAuthentication:
		return &health.Refusal{Err: err}
	}
	return err
}

func codeOf(err error) kafka.ErrorCode {
	e, _ := errors.AsType[kafka.Error](err)
	return e.Code()
}
