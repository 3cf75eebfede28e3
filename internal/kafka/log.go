package kafka

import (
	"context"
	"log/slog"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"golang.org/x/time/rate"
)

// Log takes the lines of a client's log, from one goroutine or two. Without one, nil, there is no log.
type Log func(level slog.Level, line string, args ...any)

// LogTo returns a Log that writes to another.
func LogTo(log *slog.Logger) Log {
	return func(level slog.Level, line string, args ...any) { log.Log(context.Background(), level, line, args...) }
}

// Debug returns a Log that writes all to another's debug level: the client's user logs its failures.
func Debug(log *slog.Logger) Log {
	return func(_ slog.Level, line string, args ...any) { log.Debug(line, args...) }
}

// drainLines logs librdkafka's lines until their client is closed.
func (l Log) drainLines(lines <-chan ck.LogEvent) {
	for line := range lines {
		level := slog.LevelDebug
		if line.Level <= 4 { // syslog's warning, error and worse
			level = slog.LevelWarn
		}
		l(level, line.Message, "client", line.Name, "fac", line.Tag)
	}
}

// drainEvents logs the errors of a producer that concern no message, until it is closed.
func (l Log) drainEvents(events <-chan Event) {
	limit := rate.Sometimes{Interval: time.Second}
	for ev := range events {
		if err, ok := ev.(Error); ok && l != nil && !Follows(err) {
			limit.Do(func() { l(slog.LevelWarn, "kafka producer", "err", err) })
		}
	}
}
