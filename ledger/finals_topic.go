package ledger

import (
	"context"
	"database/sql"
	"maps"

	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/kafka"
	"rankcache/internal/tick"
	"rankcache/wire"
)

const finalsAtOnce = 100 // how many finals one transaction has

// finalsReader reads finals from the database's offsets, so that one from an older dump has them. One goroutine's.
type finalsReader struct {
	*Ledger
	client *kafka.Consumer
	topic  Topic
	spans  map[int32]Span
	finals []*Final
}

// readFinals reads until ctx ends, while this ledger leads.
func (l *Ledger) readFinals(ctx context.Context, leads func() bool) {
	limit := rate.Sometimes{Interval: 10 * logEvery}
	for range tick.NowAndEvery(ctx, logEvery) {
		if !leads() {
			continue
		}
		if err := l.readFinalsOnce(ctx, leads); err != nil && ctx.Err() == nil {
			limit.Do(func() {
				l.log.Warn("finals are not read, retrying: none is made meanwhile", "topic", l.opts.Finals, "err", err)
			})
		}
	}
}

func (l *Ledger) readFinalsOnce(ctx context.Context, leads func() bool) error {
	ours := kafka.Settings{"client.id": "rankcache-ledger-finals", "auto.offset.reset": "error"}
	client, err := kafka.NewGroup(nil, l.opts.Group, ours, l.opts.Kafka)
	if err != nil {
		return err
	}
	defer client.Close()
	defer kafka.KeepLogin(ctx, l.opts.KafkaLogin, client.SetSaslCredentials)()
	r := &finalsReader{Ledger: l, client: client}
	if err := r.begin(ctx); err != nil || r.spans == nil {
		return err
	}
	for ctx.Err() == nil && leads() {
		if err := r.batch(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begin goes to the offsets of the database. Without the topic it does nothing.
func (r *finalsReader) begin(ctx context.Context) (err error) {
	if r.topic, err = topicNow(ctx, r.client.Admin, r.opts.Finals); kafka.Code(err) == kafka.ErrUnknownTopicOrPart {
		return nil
	} else if err != nil {
		return err
	}
	n, err := r.client.Partitions(ctx, r.topic.Name)
	if err != nil {
		return err
	}
	first, err := r.client.Offsets(ctx, r.topic.Name, n, kafka.First)
	if err != nil {
		return err
	}
	spans, parts := make(map[int32]Span), []kafka.TopicPartition(nil)
	for p, low := range first {
		met, err := r.opts.Store.Meet(ctx, r.topic, p, low)
		if err != nil {
			return err
		}
		if met.Next != met.Was && !met.Other {
			r.metrics.gaps.Add(float64(met.Next - met.Was))
			r.note(func(s *Status) { s.Skipped += met.Next - met.Was })
			r.log.Error("finals are gone from their topic before the ledger read them, as after a dump that is older than the topic's retention: take a newer dump, or their files; a board among them that is in Redis yet gets another final",
				"topic", r.topic.Name, "partition", p, "from", met.Was, "to", met.Next)
		}
		at := kafka.On(r.topic.Name, p)
		at.Offset = kafka.Offset(met.Next)
		parts, spans[p] = append(parts, at), Span{met.Next, met.Next}
	}
	r.spans = spans
	return r.client.Assign(parts)
}

// batch reads what there is, and keeps it.
func (r *finalsReader) batch(ctx context.Context) error {
	r.finals = r.finals[:0]
	for wait := pollEvery; len(r.finals) < finalsAtOnce; wait = linger {
		m, err := r.client.Record(wait)
		if err != nil {
			return err
		}
		if m == nil {
			break
		}
		r.add(m)
	}
	read := maps.Clone(r.spans)
	maps.DeleteFunc(read, func(_ int32, s Span) bool { return s.Next == s.First })
	if len(read) == 0 {
		return nil
	}
	if err := r.opts.Store.keepFinals(ctx, r.topic.Name, read, r.finals); err != nil {
		return err
	}
	for p, s := range read {
		r.spans[p] = Span{s.Next, s.Next}
	}
	return nil
}

func (r *finalsReader) add(m *kafka.Message) {
	p, offset := m.TopicPartition.Partition, int64(m.TopicPartition.Offset)
	r.spans[p] = Span{r.spans[p].First, offset + 1}
	f := &Final{MadeAt: m.Timestamp.UnixMilli()}
	if err := wire.DecodeFinal(m.Value, &f.Final); err != nil {
		r.log.Error("record is no final", "topic", r.topic.Name, "partition", p, "offset", offset, "err", err)
		return
	}
	r.finals = append(r.finals, f)
}

// keepFinals keeps finals that the database does not have, and moves the offsets of their topic on.
func (s results) keepFinals(ctx context.Context, topic string, spans map[int32]Span, all []*Final) error {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	return s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		if err := advance(t, topic, spans); err != nil {
			return err
		}
		for _, f := range all {
			found, err := finals(t, finalOf(t.d, f.Board))
			if err == nil && len(found) == 0 {
				if f.Rows, err = t.rowsOf(f); err == nil {
					err = t.saveFinal(f)
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// rowsOf returns the members of a final's board or shards, nil if those of the database do not add up to it.
func (t *transaction) rowsOf(f *Final) (rows []rankcache.Entry, err error) {
	q := t.d.query("SELECT member, raw, data FROM rank_score s WHERE raw IS NOT NULL AND run >= (SELECT MAX(b.base_run) FROM rank_board b WHERE b.board = s.board) AND board IN (").arg(string(f.Board))
	for _, shard := range class.ShardIDs(f.Board, class.MaxShards) {
		q.add(", ").arg(string(shard))
	}
	var sum uint64
	err = t.entries(q.add(")"), func(e rankcache.Entry) error {
		sum += wire.Hash(e.Member, e.Score)
		rows = append(rows, e)
		return nil
	})
	if err != nil || sum&wire.SumMask != f.Sum || len(rows) != f.Members {
		return nil, err
	}
	ByRank(rows)
	return rows, nil
}
