package writer

import (
	"context"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"rankcache"
)

// refusedTimeout bounds how long a refused post waits for Kafka.
const refusedTimeout = time.Second

// refusedRecord is a record of the topic of refused commands.
type refusedRecord struct {
	V         int               `json:"v"`
	Reason    string            `json:"reason"`
	Board     rankcache.BoardID `json:"board,omitempty"`
	Detail    string            `json:"detail"`
	DecidedAt int64             `json:"decided_at"` // Unix milliseconds
	Source    commandSource     `json:"source"`
	Command   json.RawMessage   `json:"command,omitempty"`
	// Base64 is what is no JSON, and Truncated that its end is missing.
	Base64    []byte `json:"command_base64,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
}

// commandSource is where a command came from: a record of the command topic, or a post.
type commandSource struct {
	Topic     string `json:"topic,omitempty"`
	Partition *int32 `json:"partition,omitempty"`
	Offset    *int64 `json:"offset,omitempty"`
	HTTP      bool   `json:"http,omitempty"`
}

func sourceOf(m *kafka.Message) commandSource {
	offset := int64(m.TopicPartition.Offset)
	return commandSource{Topic: *m.TopicPartition.Topic, Partition: &m.TopicPartition.Partition, Offset: &offset}
}

// wireReasons are the reasons of refused records, where they differ from those of
// metrics, which also name the field.
var wireReasons = map[string]string{"score_range": "score_range", "guard": "guard", "order_conflict": "order_conflict", "too_old": "too_old",
	"early": "early", "blocked": "blocked", "clock": "clock", "type": "wrong_type",
	"unknown_class": "unknown_class", "bad_dims": "bad_dims", "board_and_class": "board_and_class", "op_not_allowed": "op_not_allowed", "late": "late", "ended": "ended"}

// refusedMessage returns the record of a refused command. c is nil if the command could
// not be decoded; data are its bytes.
func (w *Writer) refusedMessage(r *Refusal, c *Command, data []byte, from commandSource) message {
	record := refusedRecord{V: 1, Reason: "invalid", Detail: r.Err.Error(), DecidedAt: time.Now().UnixMilli(), Source: from}
	if reason, ok := wireReasons[r.Reason]; ok {
		record.Reason = reason
	}
	if c != nil {
		record.Board = c.Board
	}
	switch {
	case len(data) > MaxCommandLen:
		record.Base64, record.Truncated = data[:MaxCommandLen], true
	case utf8.Valid(data) && json.Valid(data):
		record.Command = data
	default:
		record.Base64 = data
	}
	value, _ := json.Marshal(&record) // it always marshals: the command is valid JSON
	return message{w.opts.Names.Refused, []byte(record.Board), value}
}

// refusePosts counts the refused commands of a request and publishes them, if Kafka takes
// them in time; the caller knows of them anyway.
func (w *Writer) refusePosts(ctx context.Context, posts []posted) {
	var messages []message
	for _, p := range posts {
		if r, ok := errors.AsType[*Refusal](p.err); ok {
			w.refuse(r, "source", "http")
			messages = append(messages, w.refusedMessage(r, p.Command, p.body, commandSource{HTTP: true}))
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refusedTimeout)
	defer cancel()
	if err := w.publishPosts(ctx, messages); err != nil {
		w.metrics.refusedLost.Add(float64(len(messages)))
	}
}
