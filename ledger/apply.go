package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"rankcache/wire"
)

// errMet has a batch applied again with a look at the rows that are there.
var errMet = errors.New("a row of the batch is there")

// Apply writes a batch and the offsets behind it, both or neither. After [ErrOvertaken] the offsets are to be read
// again; after another error it may be applied again, which is [ErrOvertaken] if its commit had got through.
func (s *Store) Apply(ctx context.Context, b *Batch) (done Result, err error) {
	return s.applyAfter(ctx, b, func(t *transaction) error { return advance(t, b.Topic, b.ends) })
}

// applyAfter writes a batch in one transaction with what comes before it.
func (s *Store) applyAfter(ctx context.Context, b *Batch, before func(*transaction) error) (done Result, err error) {
	for _, careful := range []bool{false, true} {
		err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) (err error) {
			if err = before(t); err == nil {
				done, err = s.apply(t, b, careful)
			}
			return err
		})
		if !errors.Is(err, errMet) {
			break
		}
	}
	if err == nil {
		err = s.at("committed")
	}
	return done, err
}

// apply does Apply's work in a transaction. Only if careful it looks for rows there; else they end it with errMet.
func (s *Store) apply(t *transaction, b *Batch, careful bool) (done Result, err error) {
	if err := s.at("offsets"); err != nil {
		return done, err
	}
	named, others, err := t.servers(b)
	if err != nil {
		return done, err
	}
	c := settling{s: s.database, t: t, named: named, parts: b.parts, now: time.Now().UnixMilli(), done: &done}
	for _, part := range others {
		if err := c.turn(part); err != nil {
			return done, err
		}
	}
	runs, err := t.boardRuns(boardsOf(bare(b.updates)))
	if err != nil {
		return done, err
	}
	runs.at(b.parts)
	updates, conflict := b.updates, t.d.ignore
	done.Repeats, done.Bad = done.Repeats+b.repeats, len(b.bad)
	if c.runs = runs; careful || b.mixed || runs.meet(updates, named) {
		if updates, err = c.settle(updates); err != nil {
			return done, err
		}
		conflict = ""
	}
	if err := c.write(updates, conflict); err != nil {
		return done, err
	}
	done.Rows += len(updates)
	return done, keepBad(t, b)
}

// write writes changes that meet no other row, what members have after them, and the state of their boards.
func (c *settling) write(updates []*wire.LedgerUpdate, conflict string) error {
	s, t, runs := c.s, c.t, c.runs
	if len(updates) > 0 {
		all := bare(updates)
		n, err := t.d.insert("rank_log", conflict, updateColumns(all)...).exec(t)
		if err != nil {
			return err
		}
		if n != int64(len(all)) {
			return errMet
		}
		if err := s.at("log"); err != nil {
			return err
		}
		if _, err := t.d.insert("rank_score", t.d.newer, scoreColumns(all)...).exec(t); err != nil {
			return err
		}
	}
	for _, u := range updates {
		runs.add(u)
	}
	if err := noteForgets(t, bare(updates), c.now); err != nil {
		return err
	}
	runs.at(c.parts)
	if err := t.save(runs); err != nil {
		return err
	}
	return s.at("boards")
}

func keepBad(t *transaction, b *Batch) error {
	n := len(b.bad)
	if n == 0 {
		return nil
	}
	topic, reason, value := make([]string, n), make([]string, n), make([][]byte, n)
	part, record := make([]int64, n), make([]int64, n)
	for i, r := range b.bad {
		topic[i], reason[i], value[i], part[i], record[i] = b.Topic, r.reason, append([]byte{}, r.value...), int64(r.partition), r.offset
	}
	_, err := t.d.insert("rank_bad", "", texts("topic", topic), ints("part", part), ints("record", record), texts("reason", reason), columnOf("value", "bytea", value)).exec(t)
	return err
}
