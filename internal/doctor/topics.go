package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"rankcache"
)

// survey is what Kafka says of the topics of the super-hot boards.
type survey struct {
	boards   []rankcache.BoardID
	topics   []topic // of the boards that have one
	missing  []rankcache.BoardID
	matching int // topics that begin as update topics do, whoever's they are
	brokers  int
	now      time.Time
}

// topic is one board's log.
type topic struct {
	board                     rankcache.BoardID
	replicas, minISR          int
	policy                    string
	retention, retentionBytes int64 // -1: for ever
	low                       int64 // records that are gone from its beginning
	newest                    time.Time
}

func (k *Kafka) survey(ctx context.Context, boards []rankcache.BoardID) (survey, error) {
	s := survey{boards: boards, now: time.Now()}
	var err error
	if s.matching, s.brokers, err = k.matching(ctx); err != nil || len(boards) == 0 {
		return s, err
	}
	names := make([]string, len(boards))
	for i, b := range boards {
		names[i] = k.names.Topic(b)
	}
	answer, err := k.admin.DescribeTopics(ctx, kafka.NewTopicCollectionOfTopicNames(names))
	if err != nil {
		return s, err
	}
	parts := map[string]int{}
	for _, d := range answer.TopicDescriptions {
		board := boards[slices.Index(names, d.Name)]
		switch {
		case d.Error.Code() == kafka.ErrUnknownTopicOrPart:
			s.missing = append(s.missing, board)
			continue
		case d.Error.Code() != kafka.ErrNoError:
			return s, fmt.Errorf("topic %s: %w", d.Name, d.Error)
		}
		t := topic{board: board, minISR: 1, retention: -1, retentionBytes: -1}
		if len(d.Partitions) > 0 {
			t.replicas = len(d.Partitions[0].Replicas)
		}
		parts[d.Name] = len(d.Partitions)
		s.topics = append(s.topics, t)
	}
	return s, cmp.Or(k.settings(ctx, s.topics), k.offsets(ctx, s.topics, parts))
}

// settings fills in what the topics' settings say.
func (k *Kafka) settings(ctx context.Context, topics []topic) error {
	if len(topics) == 0 {
		return nil
	}
	ask := make([]kafka.ConfigResource, len(topics))
	for i, t := range topics {
		ask[i] = kafka.ConfigResource{Type: kafka.ResourceTopic, Name: k.names.Topic(t.board)}
	}
	answer, err := k.admin.DescribeConfigs(ctx, ask)
	if err != nil {
		return err
	}
	for _, a := range answer {
		if a.Error.Code() != kafka.ErrNoError {
			return fmt.Errorf("settings of topic %s: %w", a.Name, a.Error)
		}
		t := &topics[slices.IndexFunc(topics, func(t topic) bool { return k.names.Topic(t.board) == a.Name })]
		t.policy = a.Config["cleanup.policy"].Value
		t.retention = number(a.Config["retention.ms"].Value, -1)
		t.retentionBytes = number(a.Config["retention.bytes"].Value, -1)
		t.minISR = int(number(a.Config["min.insync.replicas"].Value, 1))
	}
	return nil
}

func number(s string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	return otherwise
}

// offsets fills in where the logs begin and when they were last written.
func (k *Kafka) offsets(ctx context.Context, topics []topic, partitions map[string]int) error {
	for _, spec := range []kafka.OffsetSpec{kafka.EarliestOffsetSpec, kafka.MaxTimestampOffsetSpec} {
		ask := map[kafka.TopicPartition]kafka.OffsetSpec{}
		for _, t := range topics {
			name := k.names.Topic(t.board)
			for p := range partitions[name] {
				ask[kafka.TopicPartition{Topic: &name, Partition: int32(p)}] = spec
			}
		}
		if len(ask) == 0 {
			return nil
		}
		answer, err := k.admin.ListOffsets(ctx, ask)
		if err != nil {
			return err
		}
		for tp, info := range answer.ResultInfos {
			if info.Error.Code() != kafka.ErrNoError {
				continue // an old broker knows no newest record
			}
			t := &topics[slices.IndexFunc(topics, func(t topic) bool { return k.names.Topic(t.board) == *tp.Topic })]
			if spec == kafka.EarliestOffsetSpec {
				t.low += max(int64(info.Offset), 0)
			} else if at := time.UnixMilli(info.Timestamp); info.Timestamp > 0 && at.After(t.newest) {
				t.newest = at
			}
		}
	}
	return nil
}
