package kafka

import (
	"context"
	"fmt"
	"strconv"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// Admin asks about topics and makes them, over its producer's or consumer's connections. Safe for concurrent use.
type Admin struct{ client *ck.AdminClient }

var (
	// ReadCommitted lists offsets as such a reader sees them: the end is before the first open transaction.
	ReadCommitted = ck.SetAdminIsolationLevel(ck.IsolationLevelReadCommitted)
	ValidateOnly  = ck.SetAdminValidateOnly(true) // has topics not made, but only the right to do so checked
)

// Topics returns the names of all topics, and the number of brokers.
func (a Admin) Topics(ctx context.Context) (names []string, brokers int, err error) {
	md, err := a.client.GetMetadata(nil, true, remaining(ctx))
	if err != nil {
		return nil, 0, err
	}
	for name := range md.Topics {
		names = append(names, name)
	}
	return names, len(md.Brokers), nil
}

func (a Admin) Brokers(ctx context.Context) (int, error) {
	none := "" // no topic can have this name
	md, err := a.client.GetMetadata(&none, false, remaining(ctx))
	if err != nil {
		return 0, err
	}
	return len(md.Brokers), nil
}

// Partitions returns the number of a topic's partitions, 0 if it is missing.
func (a Admin) Partitions(ctx context.Context, topic string) (int, error) {
	md, err := a.client.GetMetadata(&topic, false, remaining(ctx))
	if err == nil && Code(md.Topics[topic].Error) != ErrNoError {
		err = md.Topics[topic].Error
	}
	switch {
	case Code(err) == ErrUnknownTopicOrPart:
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("metadata of %s: %w", topic, err)
	}
	return len(md.Topics[topic].Partitions), nil
}

// Describe returns descriptions of topics, which have the error ErrUnknownTopicOrPart if they are missing.
func (a Admin) Describe(ctx context.Context, names ...string) ([]TopicDescription, error) {
	return a.describe(ctx, names, false)
}

// Rights returns descriptions of topics that have the rights of the user.
func (a Admin) Rights(ctx context.Context, names ...string) ([]TopicDescription, error) {
	return a.describe(ctx, names, true)
}

func (a Admin) describe(ctx context.Context, names []string, rights bool) ([]TopicDescription, error) {
	answer, err := a.client.DescribeTopics(ctx, ck.NewTopicCollectionOfTopicNames(names), ck.SetAdminOptionIncludeAuthorizedOperations(rights))
	return answer.TopicDescriptions, err
}

const NoTopicID = "AAAAAAAAAAAAAAAAAAAAAA" // the id of all topics of a broker that gives them none

// TopicID returns the id of a topic, another one once it was made again. Brokers before 2.8 give all the same.
func (a Admin) TopicID(ctx context.Context, topic string) (string, error) {
	found, err := a.Describe(ctx, topic)
	if err == nil && len(found) == 1 && found[0].Error.Code() != ErrNoError {
		err = found[0].Error
	}
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("id of topic %s: %w", topic, err)
	}
	return found[0].TopicID.String(), nil
}

// Settings returns the settings of topics.
func (a Admin) Settings(ctx context.Context, names ...string) ([]TopicSettings, error) {
	ask := make([]ck.ConfigResource, len(names))
	for i, name := range names {
		ask[i] = ck.ConfigResource{Type: ck.ResourceTopic, Name: name}
	}
	return a.client.DescribeConfigs(ctx, ask)
}

// BrokerSettings returns the settings of all brokers.
func (a Admin) BrokerSettings(ctx context.Context) (all []TopicSettings, err error) {
	none := "" // no topic can have this name
	md, err := a.client.GetMetadata(&none, false, remaining(ctx))
	if err != nil {
		return nil, err
	}
	for _, b := range md.Brokers { // each tells its own alone
		answer, err := a.client.DescribeConfigs(ctx, []ck.ConfigResource{{Type: ck.ResourceBroker, Name: strconv.Itoa(int(b.ID))}})
		if err == nil && answer[0].Error.Code() != ErrNoError {
			err = answer[0].Error
		}
		if err != nil {
			return nil, fmt.Errorf("settings of broker %d: %w", b.ID, err)
		}
		all = append(all, answer...)
	}
	return all, nil
}

// Partition names a partition. It may be a map's key, other than a [TopicPartition], which has a pointer.
type Partition struct {
	Topic  string
	Number int32
}

// ListOffsets returns an offset of each partition.
func (a Admin) ListOffsets(ctx context.Context, of []TopicPartition, spec OffsetSpec, how ...ck.ListOffsetsAdminOption) (map[Partition]OffsetResult, error) {
	ask := make(map[TopicPartition]OffsetSpec, len(of))
	for _, p := range of {
		ask[p] = spec
	}
	if len(ask) == 0 {
		return nil, nil
	}
	answer, err := a.client.ListOffsets(ctx, ask, how...)
	found := make(map[Partition]OffsetResult, len(of))
	for p, is := range answer.ResultInfos {
		found[Partition{*p.Topic, p.Partition}] = is
	}
	return found, err
}

// Offsets returns an offset of each of a topic's first n partitions; where no record is so late it is negative.
func (a Admin) Offsets(ctx context.Context, topic string, n int, spec OffsetSpec) (map[int32]int64, error) {
	return a.OffsetsOf(ctx, partitionsOf(topic, n), spec)
}

// OffsetsOf is [Admin.Offsets] for some partitions of one topic.
func (a Admin) OffsetsOf(ctx context.Context, of []TopicPartition, spec OffsetSpec, how ...ck.ListOffsetsAdminOption) (map[int32]int64, error) {
	answer, err := a.ListOffsets(ctx, of, spec, how...)
	if err != nil {
		return nil, fmt.Errorf("offsets of %s: %w", *of[0].Topic, err)
	}
	found := make(map[int32]int64, len(of))
	for p, is := range answer {
		if is.Error.Code() != ErrNoError {
			return nil, fmt.Errorf("offsets of partition %d of %s: %w", p.Number, p.Topic, is.Error)
		}
		if is.Offset < 0 && spec < 0 {
			return nil, fmt.Errorf("offsets of partition %d of %s: its leader has not answered", p.Number, p.Topic)
		}
		found[p.Number] = int64(is.Offset)
	}
	return found, nil
}

// Make makes the topics that are missing, and returns how many those were.
func (a Admin) Make(ctx context.Context, topics []TopicSpec, how ...ck.CreateTopicsAdminOption) (made int, failed error) {
	if len(topics) == 0 {
		return 0, nil
	}
	results, err := a.client.CreateTopics(ctx, topics, how...)
	if err != nil {
		return 0, fmt.Errorf("creating topic %s: %w", topics[0].Topic, err)
	}
	for _, r := range results {
		switch r.Error.Code() {
		case ErrNoError:
			made++
		case ck.ErrTopicAlreadyExists:
		default:
			failed = fmt.Errorf("creating topic %s: %w: check that this user may create topics and that the broker knows the settings", r.Topic, r.Error)
		}
	}
	return made, failed
}

// Delete deletes topics, with a result for each.
func (a Admin) Delete(ctx context.Context, names []string) ([]TopicResult, error) {
	return a.client.DeleteTopics(ctx, names, ck.SetAdminOperationTimeout(time.Duration(remaining(ctx))*time.Millisecond))
}

func partitionsOf(topic string, n int) []TopicPartition {
	all := make([]TopicPartition, n)
	for i := range all {
		all[i] = TopicPartition{Topic: &topic, Partition: int32(i)} // #nosec G115 -- a topic has thousands at most
	}
	return all
}

// remaining returns the time until the deadline of ctx, in ms.
func remaining(ctx context.Context) int {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(requestTimeout)
	}
	return max(int(time.Until(deadline).Milliseconds()), 1)
}

const requestTimeout = 30 * time.Second // bounds a request whose caller has set no limit
