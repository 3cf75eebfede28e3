package doctor

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"rankcache"
	"rankcache/internal/kafka"
	"rankcache/wire"
)

// Kafka has the checks of Kafka, by the same client and settings as the replay.
type Kafka struct {
	boards func() []rankcache.BoardID
	topic  func(rankcache.BoardID) string
	names  wire.Names
	total  string
	batch  int64 // bytes of the batches that clients with its settings make

	client *kafka.Consumer

	mu      sync.Mutex
	lastLog string // last warning of the client: its errors lack the reason
}

// OpenKafka returns the client of the checks, whose threads run until Close. boards returns the super-hot boards once
// [Boards] has passed, topic that of a board's updates; total is the value of --total.
func OpenKafka(brokers string, settings map[string]string, names wire.Names, total string, boards func() []rankcache.BoardID, topic func(rankcache.BoardID) string) (*Kafka, error) {
	k := &Kafka{boards: boards, topic: topic, names: names, total: total, batch: batchOf(settings)}
	var err error
	k.client, err = kafka.NewConsumer(k.listen, kafka.Settings{"bootstrap.servers": brokers, "group.id": "rankcache-doctor", "enable.auto.commit": "false",
		"client.id": "rankcache-doctor", "log.connection.close": "true"}, settings)
	return k, err
}

// Close ends the client. No check may be running. The zero value has none.
func (k *Kafka) Close() {
	if k.client != nil {
		_ = k.client.Close()
	}
}

// withoutKafka are the roles that can do without it.
var withoutKafka = []string{"serve", "keep", "poll"}

// WithoutKafka has the checks of Kafka skipped, or the first of them fail if a role needs it. redisLog tells whether the
// log of changes is in Redis: a writer can do without Kafka then.
func WithoutKafka(checks []Check, roles []string, redisLog bool) {
	v := Verdict{Skip, "no Kafka: --kafka is not set"}
	needs := func(role string) bool { return !slices.Contains(withoutKafka, role) && !(redisLog && role == "write") }
	if i := slices.IndexFunc(roles, needs); i >= 0 {
		v = failf("--kafka is not set, and rankcache %s needs Kafka", roles[i])
	}
	var of []string
	for i := range checks {
		c := &checks[i]
		if c.Name == CheckKafka || v.Status == Skip && slices.ContainsFunc(c.Needs, func(need string) bool { return slices.Contains(of, need) }) {
			of = append(of, c.Name)
			c.Needs, c.Look = nil, func(context.Context) Verdict { return v }
		}
	}
}

func (k *Kafka) listen(level slog.Level, line string, _ ...any) {
	if level < slog.LevelWarn {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lastLog = line
}

// logged adds to an error the last warning of the client's log.
func (k *Kafka) logged(err error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lastLog != "" {
		err = fmt.Errorf("%w: %s", err, k.lastLog)
	}
	return err
}

func (k *Kafka) explain(err error) string  { return explain(k.logged(err)) }
func (k *Kafka) unasked(err error) Verdict { return Unasked(k.logged(err)) }

// Checks returns the checks of Kafka; all depend on the first, and those of topics on [Boards].
func (k *Kafka) Checks() []Check {
	needs := []string{CheckKafka, CheckBoards}
	return []Check{
		{CheckKafka, nil, k.reachable},
		{"kafka-topics", needs, k.with(func(s survey) Verdict { return judgeTopics(s, k.total) })},
		{"kafka-retention", needs, k.with(func(s survey) Verdict { return judgeRetention(s, k.total) })},
		{"kafka-replicas", needs, k.with(judgeReplicas)},
		{"kafka-sizes", needs, k.sizes},
		{"kafka-clock", needs, k.with(judgeNewest)},
	}
}

// CommandTimes returns the check that the records of the command topic have the broker's time, by which writers know
// whether a command came in time for its period; periodic reports whether any class has periods.
func (k *Kafka) CommandTimes(periodic func() bool) Check {
	return Check{"kafka-commands", []string{CheckKafka, CheckBoards}, func(ctx context.Context) Verdict {
		if !periodic() {
			return okf("no class has periods, so no command can be late")
		}
		answer, err := k.client.Settings(ctx, k.names.Commands)
		if err != nil {
			return k.unasked(err)
		}
		return judgeCommandTimes(k.names.Commands, answer[0])
	}}
}

// Durable returns the check that the command topic keeps what durable classes need; orders returns the longest order
// life of those in force, 0 without one.
func (k *Kafka) Durable(orders func() time.Duration) Check {
	return Check{"kafka-durable", []string{CheckKafka, CheckBoards}, func(ctx context.Context) Verdict {
		life := orders()
		if life == 0 {
			return okf("no class is durable")
		}
		found, err := k.client.CommandLog(ctx, k.names.Commands)
		switch {
		case kafka.Refused(err):
			return warnf("whether topic %s is fit for durable classes is unknown: grant DescribeConfigs on it: %s", k.names.Commands, k.explain(err))
		case err != nil:
			return k.unasked(err)
		}
		replicas := 0
		if t, err := k.describe(ctx, k.names.Commands); err == nil && len(t.Partitions) > 0 {
			replicas = len(t.Partitions[0].Replicas)
		}
		return judgeDurable(found, life, replicas)
	}}
}

// Deletion returns the check that the user may delete topics of boards, as far as the broker tells for one of them.
func (k *Kafka) Deletion() Check {
	return Check{"kafka-deletion", []string{CheckKafka}, func(ctx context.Context) Verdict {
		names, _, err := k.client.Topics(ctx)
		if err != nil {
			return k.unasked(err)
		}
		for _, name := range names {
			if !k.isLog(name) {
				continue
			}
			found, err := k.describe(ctx, name)
			if err != nil {
				return k.unasked(err)
			}
			return judgeDeletion(name, found)
		}
		return okf("there is no topic of a board yet")
	}}
}

func (k *Kafka) reachable(ctx context.Context) Verdict {
	begin := time.Now()
	brokers, err := k.client.Brokers(ctx)
	if err != nil {
		return Verdict{Fail, k.explain(err)}
	}
	return okf("%d brokers, metadata in %v", brokers, time.Since(begin).Round(time.Millisecond))
}

// with returns a check that surveys the update topics and judges the survey.
func (k *Kafka) with(judge func(survey) Verdict) func(context.Context) Verdict {
	return func(ctx context.Context) Verdict {
		s, err := k.survey(ctx, k.boards())
		if err != nil {
			return k.unasked(err)
		}
		return judge(s)
	}
}

// isLog reports whether a topic has the prefix of update topics.
func (k *Kafka) isLog(name string) bool {
	return strings.HasPrefix(name, k.names.UpdatePrefix) || strings.HasPrefix(name, k.names.ClassPrefix)
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
	all, brokers, err := k.client.Topics(ctx)
	if s.brokers = brokers; err != nil {
		return s, err
	}
	s.matching = len(slices.DeleteFunc(all, func(name string) bool { return !k.isLog(name) }))
	if len(boards) == 0 {
		return s, nil
	}
	names := make([]string, len(boards))
	for i, b := range boards {
		names[i] = k.topic(b)
	}
	found, err := k.client.Describe(ctx, slices.Compact(slices.Sorted(slices.Values(names)))...)
	if err != nil {
		return s, err
	}
	parts := map[string]int{}
	for _, d := range found {
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
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.name
	}
	answer, err := k.client.Settings(ctx, names...)
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
	var of []kafka.TopicPartition
	for _, t := range topics {
		for p := range partitions[t.name] {
			of = append(of, kafka.On(t.name, int32(p)))
		}
	}
	for _, spec := range []kafka.OffsetSpec{kafka.First, kafka.Newest} {
		answer, err := k.client.ListOffsets(ctx, of, spec)
		if err != nil {
			return err
		}
		for tp, info := range answer {
			switch {
			case info.Error.Code() == kafka.ErrNoError:
			case spec == kafka.First:
				return fmt.Errorf("first offset of %s: %w", tp.Topic, info.Error)
			default:
				continue // an old broker does not support MaxTimestamp
			}
			t := &topics[slices.IndexFunc(topics, func(t topic) bool { return t.name == tp.Topic })]
			if spec == kafka.First {
				t.low += max(int64(info.Offset), 0)
			} else if at := time.UnixMilli(info.Timestamp); info.Timestamp > 0 && at.After(t.newest) {
				t.newest = at
			}
		}
	}
	return nil
}
