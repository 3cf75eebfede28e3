package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"rankcache/internal/kafka"
)

// ErrOtherDatabase reports a group whose members write another database: each would have a part of the changes.
var ErrOtherDatabase = errors.New("the group's ledgers write another database")

const (
	// databaseTopic stands for the database itself among its offsets, where its id is. No topic has such a name.
	databaseTopic = "#database"
	databaseMark  = "rankcache database " // begins what the group has of it, beside the offsets of each partition
)

// ID returns the database's id, which is made when it is asked for the first time. A copy of the database has the same.
func (s offsets) ID(ctx context.Context) (int64, error) {
	if err := s.Begin(ctx, databaseTopic, 0, rand.Int64()); err != nil {
		return 0, err
	}
	next, err := s.Offsets(ctx, Topic{Name: databaseTopic})
	return next[0], err
}

// claim notes in the group that these partitions, with the offsets at which they are read on, are written into this
// database. The error is [ErrOtherDatabase] if another one is noted for any of the topic: of two that begin together,
// the one that looks later finds it. What is committed is a note alone: reading goes on from the database's offsets.
func (f *finder) claim(parts []kafka.TopicPartition) error {
	var id int64
	if err := f.retry(f.ctx, "database", func() (err error) { id, err = f.opts.Store.ID(f.ctx); return err }); err != nil {
		return err
	}
	own := fmt.Sprintf("%s%016x", databaseMark, id)
	if err := f.meet(parts, own); err != nil {
		return err
	}
	notes := slices.Clone(parts)
	for i := range notes {
		notes[i].Metadata = &own
	}
	if _, err := f.client.CommitOffsets(notes); err != nil { // at the next assignment again
		f.errLog.Do(func() { f.log.Warn("kafka consumer", "err", err) })
	}
	all, err := f.partitions()
	if err != nil {
		return err
	}
	return f.meet(all, own)
}

// meet returns an error if another database is noted for one of the partitions.
func (f *finder) meet(parts []kafka.TopicPartition, own string) error {
	var noted []kafka.TopicPartition
	err := f.retry(f.ctx, "kafka", func() (err error) {
		noted, err = f.client.Committed(parts, int(watermarksTimeout.Milliseconds()))
		return err
	})
	for _, tp := range noted {
		if tp.Metadata != nil && strings.HasPrefix(*tp.Metadata, databaseMark) && *tp.Metadata != own {
			return fmt.Errorf("%w: give the ledgers of each database a --ledger-group of their own, also those of a new database in the place of another (the group has %q, this is %q)",
				ErrOtherDatabase, *tp.Metadata, own)
		}
	}
	return err
}

func (f *finder) partitions() (all []kafka.TopicPartition, err error) {
	err = f.retry(f.ctx, "kafka", func() error {
		found, err := f.client.GetMetadata(&f.opts.Topic, false, int(watermarksTimeout.Milliseconds()))
		if err != nil {
			return err
		}
		for _, p := range found.Topics[f.opts.Topic].Partitions {
			all = append(all, kafka.On(f.opts.Topic, p.ID))
		}
		return nil
	})
	return all, err
}
