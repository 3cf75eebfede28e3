package writer

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/internal/kafka"
	"rankcache/wire"
)

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

// wireReasons are the reasons of refused records, where they differ from those of metrics, which also name the field.
var wireReasons = map[string]string{"score_range": "score_range", "guard": "guard", "order_conflict": "order_conflict", "too_old": "too_old",
	"early": "early", "blocked": "blocked", "type": "wrong_type", "unreadable": "unreadable",
	"unknown_class": "unknown_class", "bad_dims": "bad_dims", "bad_by": "bad_by", "bad_data": "bad_data", "no_period": "no_period", "board_and_class": "board_and_class", "op_not_allowed": "op_not_allowed", "late": "late", "class_not_allowed": "class_not_allowed", "ended": "ended"}

// refuser counts and logs refused commands, and makes the records that tell of them.
type refuser struct {
	topic   string
	metrics *metrics
	counted reasonCounts
	log     *slog.Logger
	limit   rate.Sometimes // of log lines
}

// reasonCounts are how many commands were refused, by reason.
type reasonCounts struct {
	mu sync.Mutex // nothing is called under it
	of map[string]int
}

func (c *reasonCounts) add(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[reason]++
}

type refusedCount struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"` // since the process started
}

// shownReasons is how many reasons of refused commands it lists.
const shownReasons = 10

// most returns the most frequent reasons.
func (c *reasonCounts) most() []refusedCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := make([]refusedCount, 0, len(c.of))
	for _, reason := range slices.Sorted(maps.Keys(c.of)) {
		counts = append(counts, refusedCount{reason, c.of[reason]})
	}
	slices.SortStableFunc(counts, func(a, b refusedCount) int { return cmp.Compare(b.Count, a.Count) })
	return counts[:min(len(counts), shownReasons)]
}

func newRefuser(topic string, m *metrics, log *slog.Logger) *refuser {
	return &refuser{topic: topic, metrics: m, counted: reasonCounts{of: make(map[string]int)}, log: log, limit: logLimit()}
}

func (f *refuser) refuse(r *Refusal, where ...any) {
	f.metrics.countRefusal(r)
	f.counted.add(r.Reason)
	f.limit.Do(func() { f.log.Warn("command refused", append([]any{"err", r}, where...)...) })
}

// refuseRecord counts a refused command of the command topic and returns the record that tells of it.
func (f *refuser) refuseRecord(r *Refusal, c *Command, m *kafka.Message) message {
	f.refuse(r, "partition", m.TopicPartition.Partition, "offset", m.TopicPartition.Offset)
	return f.refusedMessage(r, c, m.Value, sourceOf(m))
}

// refuseFed is refuseRecord for a board that a command feeds. The command itself is applied.
func (f *refuser) refuseFed(j *job, m *kafka.Message) message {
	f.limit.Do(func() { f.log.Warn("a fed board has refused an increment", "board", j.Board, "err", j.Refusal) })
	return f.refusedMessage(j.Refusal, j.Command, m.Value, sourceOf(m))
}

// refusedMessage returns the record of a refused command. c is nil if the command could
// not be decoded; data are its bytes.
func (f *refuser) refusedMessage(r *Refusal, c *Command, data []byte, from commandSource) message {
	record := refusedRecord{V: 1, Reason: "invalid", Detail: r.Err.Error(), DecidedAt: time.Now().UnixMilli(), Source: from}
	if reason, ok := wireReasons[r.Reason]; ok {
		record.Reason = reason
	}
	if c != nil {
		record.Board = c.Board
	}
	switch {
	case c != nil && c.Op == wire.OpForget: // it would be one more place with the member
	case len(data) > MaxCommandLen:
		record.Base64, record.Truncated = data[:MaxCommandLen], true
	case utf8.Valid(data) && json.Valid(data):
		record.Command = data
	default:
		record.Base64 = data
	}
	value, _ := json.Marshal(&record) // it always marshals: the command is valid JSON
	return message{topic: f.topic, key: []byte(record.Board), value: value}
}
