package places

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"rankcache/internal/kafka"
)

// askTime bounds one question to the brokers, pollTime a wait for records.
const askTime, pollTime = 10 * time.Second, 100 * time.Millisecond

// inTopics looks at the newest records, unless none are wanted.
func (f *Finder) inTopics(ctx context.Context, member string) (all []Found) {
	for _, p := range topics(f.Names) {
		all = append(all, Found{Place: "kafka: " + p})
	}
	if f.Newest > 0 {
		if err := f.lookAtTopics(ctx, member, all); err != nil {
			return fail(all, err)
		}
		return all
	}
	for i := range all {
		all[i].Unseen = "no --topics"
	}
	return all
}

func (f *Finder) lookAtTopics(ctx context.Context, member string, all []Found) (err error) {
	client, err := kafka.NewConsumer(nil, kafka.Settings{"group.id": "rankcache-find", "enable.auto.commit": "false", "enable.partition.eof": "true",
		"isolation.level": "read_committed", "client.id": "rankcache-find"}, f.Kafka)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	asked, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	names, _, err := client.Topics(asked)
	if err != nil {
		return err
	}
	for _, name := range names {
		is := func(pattern string) bool {
			prefix, open := strings.CutSuffix(pattern, "*")
			return name == pattern || open && strings.HasPrefix(name, prefix)
		}
		if i := slices.IndexFunc(topics(f.Names), is); i >= 0 {
			if err := f.inTopic(ctx, client, name, member, &all[i]); err != nil { // others answer, perhaps
				all[i].Unseen, all[i].Failed = fmt.Sprintf("topic %s: %v", name, err), true
			}
		}
	}
	return nil
}

func (f *Finder) inTopic(ctx context.Context, client *kafka.Consumer, name, member string, found *Found) error {
	asked, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if found.Stays == "" {
		found.Stays = stays(asked, client, name)
	}
	if strings.Contains(name, member) {
		found.add(name, time.Time{})
	}
	n, err := client.Partitions(asked, name)
	if err != nil {
		return err
	}
	first, err := client.Offsets(asked, name, n, kafka.First)
	if err != nil {
		return err
	}
	ends, err := client.Offsets(asked, name, n, kafka.End)
	if err != nil {
		return err
	}
	var parts []kafka.TopicPartition
	for p, end := range ends {
		if begin := max(first[p], end-f.Newest); begin < end {
			at := kafka.On(name, p)
			at.Offset = kafka.Offset(begin)
			parts = append(parts, at)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	if err := client.Assign(parts); err != nil {
		return err
	}
	for left := len(parts); left > 0; {
		m, err := client.Record(pollTime)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case kafka.Code(err) == kafka.ErrPartitionEOF:
			left--
		case err != nil && kafka.Fatal(err):
			return err
		case err == nil && m != nil && countOf(string(m.Key)+"\n"+string(m.Value), member) > 0:
			found.add(name, m.Timestamp.UTC())
		}
	}
	return client.Unassign()
}

// stays tells how long a topic keeps its records.
func stays(ctx context.Context, client *kafka.Consumer, name string) string {
	settings, err := client.Settings(ctx, name)
	if err != nil || len(settings) != 1 {
		return "as long as the topic keeps it; its settings can't be read"
	}
	policy, retention := settings[0].Config["cleanup.policy"].Value, settings[0].Config["retention.ms"].Value
	if ms, err := strconv.ParseInt(retention, 10, 64); err == nil && ms > 0 && policy == "delete" {
		end := time.Now().Add(time.Duration(ms) * time.Millisecond)
		return "until " + end.UTC().Format(time.RFC3339) + ", and until its segment is rolled"
	}
	return fmt.Sprintf("%s, retention.ms %s", policy, retention)
}
