package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"rankcache"
	"rankcache/wire"
)

// Kafka has the checks of Kafka, by the same client and settings as the replay.
type Kafka struct {
	boards func() []rankcache.BoardID
	topic  func(rankcache.BoardID) string
	names  wire.Names
	total  string

	consumer *kafka.Consumer
	admin    *kafka.AdminClient
	logs     chan kafka.LogEvent
	logged   chan struct{}

	mu      sync.Mutex
	lastLog string // last warning of the client: its errors lack the reason
}

// OpenKafka returns the client of the checks, whose threads run until Close. boards
// returns the super-hot boards once [Boards] has passed, topic that of a board's updates; total is the value of --total.
func OpenKafka(brokers string, settings map[string]string, names wire.Names, total string, boards func() []rankcache.BoardID, topic func(rankcache.BoardID) string) (*Kafka, error) {
	k := &Kafka{boards: boards, topic: topic, names: names, total: total, logs: make(chan kafka.LogEvent, 64), logged: make(chan struct{})}
	conf := kafka.ConfigMap{"bootstrap.servers": brokers, "group.id": "rankcache-doctor", "enable.auto.commit": "false",
		"client.id": "rankcache-doctor", "enable.metrics.push": "false", "go.logs.channel.enable": true, "go.logs.channel": k.logs}
	own := kafka.ConfigMap{}
	for key, value := range settings {
		own[key] = value
	}
	maps.Copy(conf, own)
	var err error
	if k.consumer, err = kafka.NewConsumer(&conf); err != nil {
		return nil, fmt.Errorf("kafka settings: %w", err)
	}
	if k.admin, err = kafka.NewAdminClientFromConsumer(k.consumer); err != nil {
		k.consumer.Close()
		return nil, fmt.Errorf("kafka admin client: %w", err)
	}
	go k.listen()
	return k, nil
}

// Close ends the client. No check may be running.
func (k *Kafka) Close() {
	k.admin.Close()
	k.consumer.Close()
	close(k.logs)
	<-k.logged
}

func (k *Kafka) listen() {
	defer close(k.logged)
	for line := range k.logs {
		if line.Level <= 4 { // syslog's warning
			k.mu.Lock()
			k.lastLog = line.Message
			k.mu.Unlock()
		}
	}
}

// explain returns the advice for an error, to which it adds the last warning of the
// client's log.
func (k *Kafka) explain(err error) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lastLog != "" {
		err = fmt.Errorf("%w: %s", err, k.lastLog)
	}
	return explain(err)
}

// Checks returns the checks of Kafka; all depend on the first, and those of topics on [Boards].
func (k *Kafka) Checks() []Check {
	needs := []string{CheckKafka, CheckBoards}
	return []Check{
		{CheckKafka, nil, k.reachable},
		{"kafka-topics", needs, k.with(func(s survey) Verdict { return judgeTopics(s, k.total) })},
		{"kafka-retention", needs, k.with(func(s survey) Verdict { return judgeRetention(s, k.total) })},
		{"kafka-replicas", needs, k.with(judgeReplicas)},
		{"kafka-clock", needs, k.with(judgeNewest)},
	}
}

// CommandTimes returns the check that the records of the command topic have the broker's
// time, by which writers know whether a command came in time for its period; periodic reports
// whether any class has periods.
func (k *Kafka) CommandTimes(periodic func() bool) Check {
	return Check{"kafka-commands", []string{CheckKafka, CheckBoards}, func(ctx context.Context) Verdict {
		if !periodic() {
			return okf("no class has periods, so no command can be late")
		}
		answer, err := k.admin.DescribeConfigs(ctx, []kafka.ConfigResource{{Type: kafka.ResourceTopic, Name: k.names.Commands}})
		if err != nil {
			return Verdict{Fail, k.explain(err)}
		}
		return judgeCommandTimes(k.names.Commands, answer[0])
	}}
}

// Deletion returns the check that the user may delete topics of boards, as far as the
// broker tells for one of them.
func (k *Kafka) Deletion() Check {
	return Check{"kafka-deletion", []string{CheckKafka}, func(ctx context.Context) Verdict {
		md, err := k.consumer.GetMetadata(nil, true, remaining(ctx))
		if err != nil {
			return Verdict{Fail, k.explain(err)}
		}
		for name := range md.Topics {
			if !strings.HasPrefix(name, k.names.UpdatePrefix) && !strings.HasPrefix(name, k.names.ClassPrefix) {
				continue
			}
			topics, err := k.admin.DescribeTopics(ctx, kafka.NewTopicCollectionOfTopicNames([]string{name}), kafka.SetAdminOptionIncludeAuthorizedOperations(true))
			if err != nil {
				return Verdict{Fail, k.explain(err)}
			}
			return judgeDeletion(name, topics.TopicDescriptions[0])
		}
		return okf("there is no topic of a board yet")
	}}
}

// remaining returns the time until the deadline of ctx, in ms.
func remaining(ctx context.Context) int {
	deadline, _ := ctx.Deadline()
	return max(int(time.Until(deadline).Milliseconds()), 1)
}

func (k *Kafka) reachable(ctx context.Context) Verdict {
	begin := time.Now()
	none := "" // no topic can have this name: only the brokers matter
	md, err := k.consumer.GetMetadata(&none, false, remaining(ctx))
	if err != nil {
		return Verdict{Fail, k.explain(err)}
	}
	return okf("%d brokers, metadata in %v", len(md.Brokers), time.Since(begin).Round(time.Millisecond))
}

// with returns a check that surveys the update topics and judges the survey.
func (k *Kafka) with(judge func(survey) Verdict) func(context.Context) Verdict {
	return func(ctx context.Context) Verdict {
		s, err := k.survey(ctx, k.boards())
		if err != nil {
			return Verdict{Fail, k.explain(err)}
		}
		return judge(s)
	}
}

// matching returns the number of topics with the prefix of update topics, and of
// brokers.
func (k *Kafka) matching(ctx context.Context) (int, int, error) {
	md, err := k.consumer.GetMetadata(nil, true, remaining(ctx))
	if err != nil {
		return 0, 0, err
	}
	n := 0
	for name := range md.Topics {
		if strings.HasPrefix(name, k.names.UpdatePrefix) || strings.HasPrefix(name, k.names.ClassPrefix) {
			n++
		}
	}
	return n, len(md.Brokers), nil
}

// survey is the state of the topics of the super-hot boards.
type survey struct {
	boards   []rankcache.BoardID
	topics   []topic // of the boards with a topic
	missing  []rankcache.BoardID
	split    []string // topics of several partitions that belong to one board
	matching int      // all topics with the prefix of update topics
	brokers  int
	now      time.Time
}

// topic is the log of a board, or of several.
type topic struct {
	name                      string
	board                     rankcache.BoardID // the first
	replicas, minISR          int
	policy                    string
	retention, retentionBytes int64 // -1: unlimited
	low                       int64 // records that were removed from its beginning
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
		names[i] = k.topic(b)
	}
	answer, err := k.admin.DescribeTopics(ctx, kafka.NewTopicCollectionOfTopicNames(slices.Compact(slices.Sorted(slices.Values(names)))))
	if err != nil {
		return s, err
	}
	parts := map[string]int{}
	for _, d := range answer.TopicDescriptions {
		switch {
		case d.Error.Code() == kafka.ErrUnknownTopicOrPart:
			for i, b := range boards {
				if names[i] == d.Name {
					s.missing = append(s.missing, b)
				}
			}
			continue
		case d.Error.Code() != kafka.ErrNoError:
			return s, fmt.Errorf("topic %s: %w", d.Name, d.Error)
		}
		t := topic{name: d.Name, board: boards[slices.Index(names, d.Name)], minISR: 1, retention: -1, retentionBytes: -1}
		if len(d.Partitions) > 0 {
			t.replicas = len(d.Partitions[0].Replicas)
		}
		parts[d.Name] = len(d.Partitions)
		if len(d.Partitions) > 1 && !strings.HasPrefix(d.Name, k.names.ClassPrefix) {
			s.split = append(s.split, fmt.Sprintf("%s (%d)", d.Name, len(d.Partitions)))
		}
		s.topics = append(s.topics, t)
	}
	return s, cmp.Or(k.settings(ctx, s.topics), k.offsets(ctx, s.topics, parts))
}

// settings sets the fields that come from the topics' settings.
func (k *Kafka) settings(ctx context.Context, topics []topic) error {
	if len(topics) == 0 {
		return nil
	}
	ask := make([]kafka.ConfigResource, len(topics))
	for i, t := range topics {
		ask[i] = kafka.ConfigResource{Type: kafka.ResourceTopic, Name: t.name}
	}
	answer, err := k.admin.DescribeConfigs(ctx, ask)
	if err != nil {
		return err
	}
	for _, a := range answer {
		if a.Error.Code() != kafka.ErrNoError {
			return fmt.Errorf("settings of topic %s: %w", a.Name, a.Error)
		}
		t := &topics[slices.IndexFunc(topics, func(t topic) bool { return t.name == a.Name })]
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

// offsets sets the first offsets of the logs and the times of their newest records.
func (k *Kafka) offsets(ctx context.Context, topics []topic, partitions map[string]int) error {
	for _, spec := range []kafka.OffsetSpec{kafka.EarliestOffsetSpec, kafka.MaxTimestampOffsetSpec} {
		ask := map[kafka.TopicPartition]kafka.OffsetSpec{}
		for _, t := range topics {
			name := t.name
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
				continue // an old broker does not support MaxTimestamp
			}
			t := &topics[slices.IndexFunc(topics, func(t topic) bool { return t.name == *tp.Topic })]
			if spec == kafka.EarliestOffsetSpec {
				t.low += max(int64(info.Offset), 0)
			} else if at := time.UnixMilli(info.Timestamp); info.Timestamp > 0 && at.After(t.newest) {
				t.newest = at
			}
		}
	}
	return nil
}
