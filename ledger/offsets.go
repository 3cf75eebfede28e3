package ledger

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
)

// ErrOvertaken reports that the database's offsets are not those before the batch: another
// consumer has written it, or the transaction whose end is unknown was committed.
var ErrOvertaken = errors.New("the batch's offsets are not those of the database: another consumer is active, or the last commit's answer was lost")

// offsets are the next records to read.
type offsets struct{ *database }

// Offsets returns where each partition of a topic is to be read on.
func (s offsets) Offsets(ctx context.Context, topic string) (next map[int32]int64, err error) {
	next = make(map[int32]int64)
	q := s.d.query("SELECT part, next FROM rank_offset WHERE topic = ").arg(topic)
	rows, err := s.db.QueryContext(ctx, q.text.String(), q.args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var part int32
		var offset int64
		if err := rows.Scan(&part, &offset); err != nil {
			return nil, err
		}
		next[part] = offset
	}
	return next, rows.Err()
}

// Begin makes the row of a partition that is read for the first time, from an offset.
func (s offsets) Begin(ctx context.Context, topic string, partition int32, offset int64) error {
	conflict := s.d.ignore
	if !s.d.postgres {
		conflict = " ON DUPLICATE KEY UPDATE next = rank_offset.next"
	}
	return s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		_, err := s.d.insert("rank_offset", conflict, texts("topic", []string{topic}), ints("part", []int64{int64(partition)}), ints("next", []int64{offset})).exec(t)
		return err
	})
}

// Skip moves a partition from an offset, whose records the topic no longer has, on to
// another.
func (s offsets) Skip(ctx context.Context, topic string, partition int32, span Span) error {
	return s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		return advance(t, topic, map[int32]Span{partition: span})
	})
}

// advance moves the offsets on, and locks them until the transaction ends. The error is
// [ErrOvertaken] unless all are where the spans begin.
func advance(t *transaction, topic string, spans map[int32]Span) error {
	parts := slices.Sorted(maps.Keys(spans))
	q := t.d.query("UPDATE rank_offset SET next = CASE part")
	for _, p := range parts {
		q.add(" WHEN ").arg(p).add(t.d.asInt(), " THEN ").arg(spans[p].Next).add(t.d.asInt())
	}
	q.add(" END WHERE topic = ").arg(topic).add(" AND (")
	for i, p := range parts {
		if i > 0 {
			q.add(" OR ")
		}
		q.add("part = ").arg(p).add(" AND next = ").arg(spans[p].First)
	}
	n, err := q.add(")").exec(t)
	if err == nil && n != int64(len(spans)) {
		err = ErrOvertaken
	}
	return err
}
