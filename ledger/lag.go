package ledger

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"rankcache/internal/kafka"
	"rankcache/internal/tick"
)

const measureEvery = time.Second // the time between two looks at the ends of the topic

// measure tells how far the database is behind the topic, until ctx ends: beside batches, which may wait.
func (l *Ledger) measure(ctx context.Context, c *consumer) {
	limit := rate.Sometimes{Interval: 10 * logEvery}
	for range tick.Every(ctx, measureEvery) {
		topic, err := topicNow(ctx, c.client.Admin, c.topic)
		if err == nil {
			c.next.look(topic)
		}
		ends, err := c.ends(ctx)
		if err != nil && ctx.Err() == nil {
			limit.Do(func() {
				l.log.Warn("it is not known how far the ledger is behind the topic", "topic", c.topic, "err", err)
			})
			continue
		}
		records, partitions := c.next.behind(ends)
		l.note(func(s *Status) { s.Behind, s.Partitions = records+int64(s.Pending+s.Differs), partitions })
	}
}

func (c *consumer) ends(ctx context.Context) (map[int32]int64, error) {
	var of []kafka.TopicPartition
	for p := range c.next.all() {
		of = append(of, kafka.On(c.topic, p))
	}
	if len(of) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, offsetsTime)
	defer cancel()
	return c.client.OffsetsOf(ctx, of, kafka.End)
}

const (
	currentEvery = time.Second     // how often the ends of the topic are read
	currentTime  = 5 * time.Minute // bounds how long the database may take to have all up to them
)

// current tells since when the database has every record that the topic had. It belongs to one goroutine.
type current struct {
	ledger *Ledger
	client *kafka.Consumer
	log    *slog.Logger
	errLog rate.Sometimes
}

// run makes the index for reads and then notes, until ctx ends, when the database had all.
func (c *current) run(ctx context.Context) {
	for range tick.NowAndEvery(ctx, currentEvery) {
		at := time.Now()
		err := c.index(ctx)
		if err == nil {
			err = c.reached(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.errLog.Do(func() { c.log.Warn("what the ledger has for reads grows older", "err", err) })
		default:
			c.ledger.note(func(s *Status) { s.CurrentAt = at })
		}
	}
}

// index makes the index, or only looks for it.
func (c *current) index(ctx context.Context) error {
	store := c.ledger.opts.Store
	if !c.ledger.opts.Check {
		return store.MakeRankIndex(ctx)
	}
	there, err := store.HasRankIndex(ctx)
	if err == nil && !there {
		err = fmt.Errorf("%w: run rankcache ledger migrate --serve-reads", ErrRankIndex)
	}
	return err
}

// reached returns once the database has all records that are in the topic now.
func (c *current) reached(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, currentTime)
	defer cancel()
	return positions{ctx, c.client.Admin}.written(c.ledger.opts.Topic, c.ledger.opts.Store)
}
