package kafka

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The settings of a topic on which durable classes depend.
const (
	timestampType = "message.timestamp.type"
	cleanupPolicy = "cleanup.policy"
	retentionTime = "retention.ms"

	brokersTime = "LogAppendTime"
	byTime      = "delete"
)

const usualRetention = 7 * 24 * time.Hour // what Kafka itself keeps

// CommandLog is how a topic of commands keeps its records.
type CommandLog struct {
	Topic          string
	Missing        bool  // there is no such topic
	RetentionBytes int64 // limits each partition; negative: nothing does
	MinISR         int

	times, policy string
	retention     int64 // ms; negative: for ever
}

// CommandLog returns how a topic keeps its records. The error is [Refused] without the right DescribeConfigs.
func (a Admin) CommandLog(ctx context.Context, topic string) (CommandLog, error) {
	answer, err := a.Settings(ctx, topic)
	if err == nil && answer[0].Error.Code() != ErrNoError {
		err = answer[0].Error
	}
	switch {
	case Code(err) == ErrUnknownTopicOrPart:
		return CommandLog{Topic: topic, Missing: true}, nil
	case err != nil:
		return CommandLog{}, fmt.Errorf("settings of topic %s: %w", topic, err)
	}
	return newCommandLog(answer[0]), nil
}

func newCommandLog(found TopicSettings) CommandLog {
	number := func(key string, otherwise int64) int64 {
		if n, err := strconv.ParseInt(found.Config[key].Value, 10, 64); err == nil {
			return n
		}
		return otherwise
	}
	return CommandLog{Topic: found.Name, times: found.Config[timestampType].Value, policy: found.Config[cleanupPolicy].Value,
		retention: number(retentionTime, 0), RetentionBytes: number("retention.bytes", -1), MinISR: int(number("min.insync.replicas", 1))}
}

// Fit returns an error with all that is to be changed unless durable classes of an order life
// lose nothing with this log: each of its records has the broker's time, and stays for two order lives.
func (l *CommandLog) Fit(orders time.Duration) error {
	if l.Missing {
		return fmt.Errorf("there is no topic %s: have the writer make it by --command-partitions, or make it with %s=%s", l.Topic, timestampType, brokersTime)
	}
	var wrong []string
	want := func(key, value, is string) {
		wrong = append(wrong, fmt.Sprintf("%s=%s (it is %s)", key, value, cmp.Or(is, "not known")))
	}
	if l.times != brokersTime {
		want(timestampType, brokersTime, l.times)
	}
	if l.policy != byTime {
		want(cleanupPolicy, byTime, l.policy)
	}
	if least := (2 * orders).Milliseconds(); l.retention >= 0 && l.retention < least {
		want(retentionTime, strconv.FormatInt(least, 10), fmt.Sprintf("%d, less than two order lives of %v", l.retention, orders))
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("set on topic %s: %s", l.Topic, strings.Join(wrong, ", "))
}

// CommandLogSettings returns settings of a new topic fit for durable classes; 0: none, the broker's retention stays.
func CommandLogSettings(orders time.Duration) map[string]string {
	settings := map[string]string{timestampType: brokersTime} // tells when a command has arrived
	if orders > 0 {
		settings[cleanupPolicy] = byTime
		settings[retentionTime] = strconv.FormatInt(max(usualRetention, 2*orders).Milliseconds(), 10)
	}
	return settings
}
