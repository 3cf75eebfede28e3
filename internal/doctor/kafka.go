package doctor

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"rankcache"
	"rankcache/wire"
)

// Kafka looks at the brokers with the same client and settings as the replay.
type Kafka struct {
	boards func(context.Context) ([]rankcache.BoardID, error)
	names  wire.Names
	total  string

	consumer *kafka.Consumer
	admin    *kafka.AdminClient
	logs     chan kafka.LogEvent
	logged   chan struct{}

	mu      sync.Mutex
	trouble string // what the client last complained of: its errors name no reason
}

// OpenKafka returns the checks' client, whose threads run until Close. boards
// returns the super-hot boards; total is what --total says.
func OpenKafka(brokers string, settings map[string]string, names wire.Names, total string, boards func(context.Context) ([]rankcache.BoardID, error)) (*Kafka, error) {
	k := &Kafka{boards: boards, names: names, total: total, logs: make(chan kafka.LogEvent, 64), logged: make(chan struct{})}
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
			k.trouble = line.Message
			k.mu.Unlock()
		}
	}
}

// explain says what went wrong, with the reason that only the client's log knows.
func (k *Kafka) explain(err error) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.trouble != "" {
		err = fmt.Errorf("%w: %s", err, k.trouble)
	}
	return explain(err)
}

// Checks returns the checks of Kafka; all need the first.
func (k *Kafka) Checks() []Check {
	return []Check{
		{CheckKafka, "", k.reachable},
		{"kafka-topics", CheckKafka, k.with(judgeTopics)},
		{"kafka-retention", CheckKafka, k.with(func(s survey) Verdict { return judgeRetention(s, k.total) })},
		{"kafka-replicas", CheckKafka, k.with(judgeReplicas)},
		{"kafka-clock", CheckKafka, k.with(judgeNewest)},
	}
}

// remaining is the time that the context leaves, in the client's milliseconds.
func remaining(ctx context.Context) int {
	deadline, _ := ctx.Deadline()
	return max(int(time.Until(deadline).Milliseconds()), 1)
}

func (k *Kafka) reachable(ctx context.Context) Verdict {
	begin := time.Now()
	none := "" // a topic that can't be: only the brokers are of interest
	md, err := k.consumer.GetMetadata(&none, false, remaining(ctx))
	if err != nil {
		return Verdict{Fail, k.explain(err)}
	}
	return okf("%d brokers, metadata in %v", len(md.Brokers), time.Since(begin).Round(time.Millisecond))
}

// with surveys the update topics and has judge say what that means.
func (k *Kafka) with(judge func(survey) Verdict) func(context.Context) Verdict {
	return func(ctx context.Context) Verdict {
		boards, err := k.boards(ctx)
		if err != nil {
			return warnf("which boards are super-hot is not known: %s", explain(err))
		}
		s, err := k.survey(ctx, boards)
		if err != nil {
			return Verdict{Fail, k.explain(err)}
		}
		return judge(s)
	}
}

// matching returns how many topics begin as an update topic does, and of how many
// brokers.
func (k *Kafka) matching(ctx context.Context) (int, int, error) {
	md, err := k.consumer.GetMetadata(nil, true, remaining(ctx))
	if err != nil {
		return 0, 0, err
	}
	n := 0
	for name := range md.Topics {
		if strings.HasPrefix(name, k.names.UpdatePrefix) {
			n++
		}
	}
	return n, len(md.Brokers), nil
}
