package ledger

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"rankcache/internal/kafka"
	"rankcache/internal/tick"
)

const (
	measureEvery = time.Second     // the time between two looks at the ends of the topic
	currentTime  = 5 * time.Minute // bounds how long the database may take to have all up to them
)

// measure tells how far the database is behind the topic, until ctx ends: beside batches, which may wait.
func (f *finder) measure(ctx context.Context) {
	limit := rate.Sometimes{Interval: 10 * logEvery}
	for range tick.Every(ctx, measureEvery) {
		topic, err := topicNow(ctx, f.client.Admin, f.opts.Topic)
		if err == nil {
			f.next.look(topic)
		}
		ends, err := f.ends(ctx)
		if err != nil && ctx.Err() == nil {
			limit.Do(func() {
				f.log.Warn("it is not known how far the ledger is behind the topic", "topic", f.opts.Topic, "err", err)
			})
			continue
		}
		records, partitions := f.next.behind(ends)
		f.note(func(s *Status) { s.Behind, s.Partitions = records+int64(s.Pending+s.Differs), partitions })
	}
}

func (f *finder) ends(ctx context.Context) (map[int32]int64, error) {
	var of []kafka.TopicPartition
	for p := range f.next.all() {
		of = append(of, kafka.On(f.opts.Topic, p))
	}
	if len(of) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, offsetsTime)
	defer cancel()
	return f.client.OffsetsOf(ctx, of, kafka.End)
}

// keepCurrent makes the index for reads and then notes, until ctx ends, when the database had all that the topic had.
func (f *finder) keepCurrent(ctx context.Context) {
	limit := rate.Sometimes{Interval: 10 * logEvery}
	for range tick.NowAndEvery(ctx, measureEvery) {
		at := time.Now()
		err := f.index(ctx)
		if err == nil {
			err = f.reached(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			limit.Do(func() { f.log.Warn("what the ledger has for reads grows older", "err", err) })
		default:
			f.note(func(s *Status) { s.CurrentAt = at })
		}
	}
}

// index makes the index, or only looks for it.
func (f *finder) index(ctx context.Context) error {
	if !f.opts.Check {
		return f.opts.Store.MakeRankIndex(ctx)
	}
	there, err := f.opts.Store.HasRankIndex(ctx)
	if err == nil && !there {
		err = fmt.Errorf("%w: run rankcache ledger migrate --serve-reads", ErrRankIndex)
	}
	return err
}

// reached returns once the database has all records that are in the topic now.
func (f *finder) reached(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, currentTime)
	defer cancel()
	return positions{ctx, f.client.Admin}.written(f.opts.Topic, f.opts.Store)
}
