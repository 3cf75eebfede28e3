package writer

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// logEvery is the least time between two log lines about the same kind of
// trouble; what is left out is counted by the metrics.
const logEvery = time.Second

// rarely logs at most once per logEvery. The zero value is ready; it may be
// used concurrently.
type rarely struct{ last atomic.Int64 } // Unix nanoseconds

func (r *rarely) log(log *slog.Logger, level slog.Level, msg string, args ...any) {
	now, last := time.Now().UnixNano(), r.last.Load()
	if now-last >= int64(logEvery) && r.last.CompareAndSwap(last, now) {
		log.Log(context.Background(), level, msg, args...)
	}
}

// drainLogs passes librdkafka's own lines on, until its client is closed.
func drainLogs(log *slog.Logger, lines <-chan kafka.LogEvent) {
	for line := range lines {
		level := slog.LevelDebug
		if line.Level <= 4 { // syslog's warning, error and worse
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, line.Message, "client", line.Name, "fac", line.Tag)
	}
}

// drainEvents reads what concerns a producer as a whole, until it is closed.
func drainEvents(log *slog.Logger, events <-chan kafka.Event) {
	var trouble rarely
	for ev := range events {
		if err, ok := ev.(kafka.Error); ok {
			trouble.log(log, slog.LevelWarn, "kafka producer", "err", err)
		}
	}
}
