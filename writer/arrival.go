package writer

import (
	"time"

	"rankcache/internal/kafka"
)

// recordTime returns the time of a record in Unix milliseconds, or that of its poll for a
// record without.
func recordTime(m *kafka.Message, polled time.Time) int64 {
	if at := m.Timestamp.UnixMilli(); m.TimestampType != kafka.NoTime && at > 0 {
		return at
	}
	return polled.UnixMilli()
}

// arrival returns when the broker has appended a record, or the time of its poll if the
// sender chose the record's time.
func arrival(m *kafka.Message, polled time.Time) time.Time {
	if brokerDates(m) {
		return m.Timestamp
	}
	return polled
}

// brokerDates reports whether a record's time is that at which the broker has appended it.
func brokerDates(m *kafka.Message) bool { return m.TimestampType == kafka.LogAppendTime }
