package rebuild

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"rankcache"
	"rankcache/internal/kafka"
	"rankcache/rooms"
	"rankcache/wire"
)

const (
	pollTime = 100 * time.Millisecond // how long a poll waits for a record
	askTime  = 10 * time.Second       // bounds a question to Kafka
)

// Updates reads boards from the topics of their updates, without a ledger.
type Updates struct {
	Kafka kafka.Settings
	Names wire.Names
	File  *rooms.File
}

// reader reads a topic from its beginning to where its end is. It belongs to one goroutine.
type reader struct {
	client *kafka.Consumer
	topic  string
	parts  []kafka.TopicPartition
	at     map[int32]int64 // next offset of each
	cut    bool            // the beginning of the topic is gone
}

// open returns a reader, which the caller closes.
func (s *Updates) open(ctx context.Context, topic string) (*reader, error) {
	ours := kafka.Settings{"group.id": "rankcache-rebuild", "enable.auto.commit": "false", "auto.offset.reset": "earliest", "enable.partition.eof": "true",
		"isolation.level": "read_committed", "fetch.queue.backoff.ms": "10", "fetch.wait.max.ms": "50", "client.id": "rankcache-rebuild"}
	client, err := kafka.NewConsumer(nil, ours, s.Kafka)
	if err != nil {
		return nil, err
	}
	r := &reader{client: client, topic: topic}
	if err := r.begin(ctx); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return r, nil
}

// begin finds the partitions and goes to their beginning.
func (r *reader) begin(ctx context.Context) error {
	asked, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	n, err := r.client.Partitions(asked, r.topic)
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("%w: there is no topic %s", errLogShort, r.topic)
	}
	first, err := r.client.Offsets(asked, r.topic, n, kafka.First)
	if err != nil {
		return err
	}
	r.parts, r.at = nil, first
	for p, offset := range first {
		at := kafka.On(r.topic, p)
		at.Offset = kafka.Offset(offset)
		r.parts, r.cut = append(r.parts, at), r.cut || offset > 0
	}
	return r.client.Assign(r.parts)
}

// toEnd calls fn with each update up to the topic's end at the call. Its strings are valid during the call.
func (r *reader) toEnd(ctx context.Context, fn func(*wire.Update)) error {
	asked, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	ends, err := r.client.OffsetsOf(asked, r.parts, kafka.End, kafka.ReadCommitted)
	if err != nil {
		return err
	}
	var u wire.Update
	for r.behind(ends) {
		m, err := r.client.Record(pollTime)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case kafka.Code(err) == kafka.ErrPartitionEOF:
			r.at[m.TopicPartition.Partition] = int64(m.TopicPartition.Offset)
		case err != nil && kafka.Fatal(err):
			return fmt.Errorf("reading %s: %w", r.topic, err)
		case err != nil || m == nil:
		default:
			r.at[m.TopicPartition.Partition] = int64(m.TopicPartition.Offset) + 1
			if u = (wire.Update{}); wire.DecodeUpdate(m.Value, &u) == nil {
				fn(&u)
			}
		}
	}
	return nil
}

func (r *reader) behind(ends map[int32]int64) bool {
	for p, end := range ends {
		if r.at[p] < end {
			return true
		}
	}
	return false
}

func (r *reader) close() { _ = r.client.Close() }

// BoardsOf returns the boards of a class that have updates in Kafka, in the order of their bytes.
func (s *Updates) BoardsOf(ctx context.Context, class string) ([]rankcache.BoardID, error) {
	client, err := kafka.NewConsumer(nil, kafka.Settings{"group.id": "rankcache-rebuild"}, s.Kafka)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	asked, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	topics, _, err := client.Topics(asked)
	if err != nil {
		return nil, err
	}
	found := make(map[rankcache.BoardID]bool)
	for _, topic := range topics {
		if !strings.HasPrefix(topic, s.Names.ClassPrefix+class+".") && !strings.HasPrefix(topic, s.Names.UpdatePrefix) {
			continue
		}
		if err := s.boardsIn(ctx, topic, class, found); err != nil {
			return nil, err
		}
	}
	return sorted(found), nil
}

func (s *Updates) boardsIn(ctx context.Context, topic, class string, found map[rankcache.BoardID]bool) error {
	r, err := s.open(ctx, topic)
	if err != nil {
		return err
	}
	defer r.close()
	return r.toEnd(ctx, func(u *wire.Update) {
		if found[u.Board] {
			return
		}
		if _, of, ok := s.File.Board(u.Board); ok && of.Name() == class {
			found[rankcache.BoardID(strings.Clone(string(u.Board)))] = true
		}
	})
}

func sorted(set map[rankcache.BoardID]bool) (all []rankcache.BoardID) {
	for b := range set {
		all = append(all, b)
	}
	slices.Sort(all)
	return all
}
