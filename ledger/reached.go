package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rankcache/internal/kafka"
	"rankcache/internal/tick"
)

// ErrBehind reports that commands which are in Kafka are not in the ledger yet.
var ErrBehind = errors.New("the ledger does not have all commands yet")

const (
	reachedEvery = 200 * time.Millisecond
	offsetsTime  = 5 * time.Second
)

// Feed names what lies between a command and the ledger's rows.
type Feed struct {
	Commands string // topic of the commands
	Writers  string // consumer group of the writers
	Ledger   string // topic of the ledger
}

// Reached returns once the ledger has every command that was in the commands' topic when it was called: the writers
// have committed it, and the database is behind the records that they had written by then. The error wraps [ErrBehind]
// if that takes longer than patience. The client is one for the writers' group.
func Reached(ctx context.Context, client *kafka.Consumer, store *Store, feed Feed, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	at := positions{ctx, client.Admin}
	if err := at.wait(feed.Commands, "the writers' group "+feed.Writers, func(ends map[int32]int64) (map[int32]int64, error) {
		ctx, cancel := context.WithTimeout(ctx, offsetsTime)
		defer cancel()
		return client.GroupOffsets(ctx, feed.Writers, feed.Commands, len(ends))
	}); err != nil {
		return err
	}
	return at.written(feed.Ledger, store)
}

// Published returns once the database has all finals published by now. The error wraps [ErrBehind] after patience.
func Published(ctx context.Context, admin kafka.Admin, store *Store, finals string, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return positions{ctx, admin}.written(finals, store)
}

// Now is what a running ledger tells of itself. Its functions may be called at any time while it runs.
type Now struct {
	Leads func() bool // reports whether this is the one of all ledgers that does what one of them has to do
	// Reached returns once the database has all that the topic had at the call; else [ErrBehind] or Kafka's error.
	Reached func(ctx context.Context) error
}

// positions reads offsets while a call lasts.
type positions struct {
	ctx   context.Context
	admin kafka.Admin
}

// written returns once the database has all of a topic that is there now.
func (p positions) written(topic string, store *Store) error {
	of, err := topicNow(p.ctx, p.admin, topic)
	if kafka.Code(err) == kafka.ErrUnknownTopicOrPart {
		return nil // nothing was written yet
	}
	if err != nil {
		return err
	}
	return p.wait(topic, "the ledger", func(map[int32]int64) (map[int32]int64, error) { return store.Offsets(p.ctx, of) })
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
	return errors.Join(fmt.Errorf("%w: %s has not read all of %s: look at its lag, and whether that is the topic that it reads", ErrBehind, reader, topic), err)
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
	asked, cancel := context.WithTimeout(p.ctx, offsetsTime)
	defer cancel()
	n, err := p.admin.Partitions(asked, topic)
	if err != nil {
		return nil, err
	}
	return p.admin.Offsets(p.ctx, topic, n, kafka.End)
}

func topicNow(ctx context.Context, admin kafka.Admin, name string) (Topic, error) {
	ctx, cancel := context.WithTimeout(ctx, offsetsTime)
	defer cancel()
	id, err := admin.TopicID(ctx, name)
	if id == kafka.NoTopicID {
		id = ""
	}
	return Topic{name, id}, err
}
