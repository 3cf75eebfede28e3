package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"rankcache/wire"
)

const badEvery = time.Minute // how often it is looked what is in rank_bad

var errTaken = errors.New("another ledger takes the records")

type badKey struct {
	topic        string
	part, record int64
}

func badColumns(keys []badKey) []column {
	topic, part, record := make([]string, len(keys)), make([]int64, len(keys)), make([]int64, len(keys))
	for i, k := range keys {
		topic[i], part[i], record[i] = k.topic, k.part, k.record
	}
	return []column{texts("topic", topic), ints("part", part), ints("record", record)}
}

// Bad counts the records of rank_bad.
func (s *Store) Bad(ctx context.Context) (n int, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT count(*) FROM rank_bad").Scan(&n)
	return n, err
}

// TakeAgain applies the records of rank_bad that can be read, each with its removal, and returns how many.
func (s *Store) TakeAgain(ctx context.Context) (taken int, err error) {
	for last := (badKey{}); ; {
		b, keys, next, err := s.readable(ctx, last)
		if err != nil || next == last {
			return taken, err
		}
		if last = next; len(keys) == 0 {
			continue
		}
		ours := true
		_, err = s.applyAfter(ctx, b, func(t *transaction) error {
			n, err := t.d.query("DELETE FROM rank_bad WHERE ").among(badColumns(keys)...).exec(t)
			if ours = n == int64(len(keys)); err == nil && !ours {
				err = errTaken
			}
			return err
		})
		if !ours { // another ledger takes them
			continue
		}
		if err != nil {
			return taken, err
		}
		taken += len(keys)
	}
}

// readable returns the changes among the records behind one, and up to where it has looked.
func (s *Store) readable(ctx context.Context, after badKey) (b *Batch, keys []badKey, last badKey, err error) {
	b, last = NewBatch(after.topic), after
	full := false
	q := s.d.query("SELECT topic, part, record, value FROM rank_bad WHERE (topic, part, record) > (").arg(after.topic).add(", ").arg(after.part).add(", ").arg(after.record).
		add(") ORDER BY topic, part, record LIMIT 500")
	err = s.each(ctx, q, func(row *sql.Rows) error {
		var k badKey
		var value []byte
		if err := row.Scan(&k.topic, &k.part, &k.record, &value); err != nil || full {
			return err
		}
		u := &wire.LedgerUpdate{}
		if wire.DecodeLedgerUpdate(value, u) == nil {
			if full = !b.Add(u, 0, 0, 0); full { // it can't stand beside another one: with the next ones
				return nil
			}
			keys = append(keys, k)
		}
		last = k
		return nil
	})
	return b, keys, last, err
}
