package writer

import (
	"encoding/json"
	"time"

	"rankcache/internal/kafka"
	"rankcache/rooms"
	"rankcache/wire"
)

// commandKey returns a command's key in the command topic: what keeps the sequence of those that don't commute.
func commandKey(c *Command, kind *rooms.Class) string {
	if kind.OrderedAsBoard() {
		return string(c.Board)
	}
	return c.Member
}

// encodeCommand returns the JSON of a command, its time included: that of the record that it becomes would be another.
func encodeCommand(c *Command) []byte {
	w := wire.Command{Class: c.Class, Dims: c.Dims, By: c.By, Room: c.Room, Member: c.Member, Op: c.Op.String(), Order: c.OrderID, At: c.At, Reason: c.Reason, Data: c.Data}
	if c.Class == "" {
		w.Board = string(c.Board)
	}
	switch c.Op {
	case wire.OpIncr:
		w.Delta = &c.Number
	case wire.OpSet, wire.OpBest:
		w.Score = &c.Number
	}
	text, _ := json.Marshal(&w) // finite numbers and strings
	return text
}

const postHeader = "post" // of a record of the command topic names the post that it is of

// postOf returns the name of a record's post, "" if it is of none.
func postOf(m *kafka.Message) string {
	for _, h := range m.Headers {
		if h.Key == postHeader {
			return string(h.Value)
		}
	}
	return ""
}

// recordTime returns the time of a record in Unix milliseconds, or that of its poll for a record without.
func recordTime(m *kafka.Message, polled time.Time) int64 {
	if at := m.Timestamp.UnixMilli(); m.TimestampType != kafka.NoTime && at > 0 {
		return at
	}
	return polled.UnixMilli()
}

// arrival returns when the broker has appended a record, or the time of its poll if the sender chose the record's time.
func arrival(m *kafka.Message, polled time.Time) time.Time {
	if brokerDates(m) {
		return m.Timestamp
	}
	return polled
}

// brokerDates reports whether a record's time is that at which the broker has appended it.
func brokerDates(m *kafka.Message) bool { return m.TimestampType == kafka.LogAppendTime }
