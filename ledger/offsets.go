package ledger

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
)

// ErrOvertaken reports that another consumer has written the offsets, or that the doubtful transaction was committed.
var ErrOvertaken = errors.New("the batch's offsets are not those of the database: another consumer is active, or the last commit's answer was lost")

type offsets struct{ *database }

// Topic names a topic. ID is another one once the topic was deleted and made again; "" if it is not known.
type Topic struct{ Name, ID string }

// Span is what a batch has of a partition: First was to be read next before, Next is after it.
type Span struct{ First, Next int64 }

// Offsets returns where each partition of a topic is to be read on, but for those of a former topic of its name.
func (s offsets) Offsets(ctx context.Context, topic Topic) (next map[int32]int64, err error) {
	next = make(map[int32]int64)
	q := s.d.query("SELECT part, next FROM rank_offset WHERE topic = ").arg(topic.Name)
	if topic.ID != "" {
		q.add(" AND topic_id IN ('', ").arg(topic.ID).add(")")
	}
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

// Met is what [offsets.Meet] has found.
type Met struct {
	Next  int64 // where the partition is to be read on
	Was   int64 // before: of another topic, or of records that are gone from this one
	Other bool  // the topic was made again
}

// Meet returns where a partition with records from first on is read on, and keeps it; from first if made again.
func (s offsets) Meet(ctx context.Context, topic Topic, partition int32, first int64) (m Met, err error) {
	if err := s.Begin(ctx, topic.Name, partition, first); err != nil {
		return m, err
	}
	err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		var id string
		of := func(q *query) *query {
			return q.add(" WHERE topic = ").arg(topic.Name).add(" AND part = ").arg(partition)
		}
		err := of(t.d.query("SELECT next, topic_id FROM rank_offset")).add(" FOR UPDATE").each(t, func(row *sql.Rows) error { return row.Scan(&m.Was, &id) })
		if err != nil {
			return err
		}
		if m.Next = max(m.Was, first); topic.ID == "" {
			topic.ID = id
		}
		if m.Other = id != "" && id != topic.ID; m.Other {
			m.Next = first
		}
		if m.Next == m.Was && id == topic.ID {
			return nil
		}
		_, err = of(t.d.query("UPDATE rank_offset SET next = ").arg(m.Next).add(", topic_id = ").arg(topic.ID)).exec(t)
		return err
	})
	return m, err
}

// advance moves the offsets on, locked until the end. The error is [ErrOvertaken] unless all are where spans begin.
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
