package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"rankcache/internal/tick"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// ErrBehind reports that commands which are in Kafka are not in the ledger yet.
var ErrBehind = errors.New("the ledger does not have all commands yet")

const (
	reachedEvery = 200 * time.Millisecond
	offsetsTime  = 5 * time.Second
)

// Feed names what lies between a command and the ledger's rows.
type Feed struct {
	Writers string // consumer group of the writers
	Ledger  string // topic of the ledger
}

// Reached returns once the ledger has every command that was in the commands' topic when it
// was called: the writers have committed it, and the database is behind the records that
// they had written by then. The error wraps [ErrBehind] if that takes longer than patience.
func (p *Poster) Reached(ctx context.Context, store *Store, feed Feed, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	admin, err := kafka.NewAdminClientFromProducer(p.client)
	if err != nil {
		return fmt.Errorf("kafka admin client: %w", err)
	}
	defer admin.Close()
	group, err := p.group(feed.Writers)
	if err != nil {
		return err
	}
	defer group.Close()
	at := positions{ctx, admin}
	if err := at.wait(p.topic, "the writers' group "+feed.Writers, func(ends map[int32]int64) (map[int32]int64, error) {
		return committed(group, feed.Writers, p.topic, ends)
	}); err != nil {
		return err
	}
	return at.wait(feed.Ledger, "the ledger", func(map[int32]int64) (map[int32]int64, error) { return store.Offsets(ctx, feed.Ledger) })
}

// positions reads offsets while a call lasts.
type positions struct {
	ctx   context.Context
	admin *kafka.AdminClient
}

// wait returns once all of a topic that is there now was read.
func (p positions) wait(topic, reader string, next func(ends map[int32]int64) (map[int32]int64, error)) error {
	ends, err := p.ends(topic)
	if err != nil {
		return err
	}
	for range tick.NowAndEvery(p.ctx, reachedEvery) {
		var at map[int32]int64
		if at, err = next(ends); err == nil && passed(at, ends) {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("%w: %s has not read all of %s: look at its lag", ErrBehind, reader, topic), err)
}

// passed reports whether all partitions that have records were read to their ends.
func passed(at, ends map[int32]int64) bool {
	for p, end := range ends {
		if end > 0 && at[p] < end {
			return false
		}
	}
	return true
}

// ends returns the ends of a topic's partitions, none if there is no such topic.
func (p positions) ends(topic string) (map[int32]int64, error) {
	md, err := p.admin.GetMetadata(&topic, false, int(offsetsTime.Milliseconds()))
	if err != nil {
		return nil, fmt.Errorf("partitions of %s: %w", topic, err)
	}
	ask := make(map[kafka.TopicPartition]kafka.OffsetSpec)
	for _, part := range md.Topics[topic].Partitions {
		ask[kafka.TopicPartition{Topic: &topic, Partition: part.ID}] = kafka.LatestOffsetSpec
	}
	ends := make(map[int32]int64)
	if len(ask) == 0 {
		return ends, nil
	}
	answer, err := p.admin.ListOffsets(p.ctx, ask)
	if err != nil {
		return nil, fmt.Errorf("ends of %s: %w", topic, err)
	}
	for part, info := range answer.ResultInfos {
		if info.Error.Code() != kafka.ErrNoError {
			return nil, fmt.Errorf("end of %s, partition %d: %w", topic, part.Partition, info.Error)
		}
		ends[part.Partition] = int64(info.Offset)
	}
	return ends, nil
}

// group returns a client that joins nothing and reads what a consumer group has committed. The
// caller closes it. Asked by another client for that, librdkafka crashes when the broker does not
// coordinate the group any more.
func (p *Poster) group(name string) (*kafka.Consumer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	conf := maps.Clone(p.settings)
	conf["group.id"], conf["enable.auto.commit"], conf["log_level"] = name, false, 0
	client, err := kafka.NewConsumer(&conf)
	if err != nil {
		return nil, fmt.Errorf("kafka consumer: %w", err)
	}
	return client, nil
}

// committed returns the offsets that the group of a client has committed.
func committed(client *kafka.Consumer, group, topic string, parts map[int32]int64) (map[int32]int64, error) {
	var ask []kafka.TopicPartition
	for part := range parts {
		ask = append(ask, kafka.TopicPartition{Topic: &topic, Partition: part})
	}
	next := make(map[int32]int64)
	if len(ask) == 0 {
		return next, nil
	}
	at, err := client.Committed(ask, int(offsetsTime.Milliseconds()))
	if err != nil {
		return nil, fmt.Errorf("offsets of the group %s: %w: check that this user may describe it", group, err)
	}
	for _, part := range at {
		if part.Error != nil {
			return nil, fmt.Errorf("offset of the group %s: %w", group, part.Error)
		}
		next[part.Partition] = int64(part.Offset)
	}
	return next, nil
}
