package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"rankcache/wire"
)

// Result tells what became of a batch.
type Result struct {
	Rows    int // written to rank_log
	Repeats int // of changes that were there
	Aside   int // moved or written to rank_lost
	Bad     int // written to rank_bad
	Reborn  int // boards that have begun again
}

// errMet has a batch applied again with a look at the rows that are there.
var errMet = errors.New("a row of the batch is there")

// Apply writes a batch and the offsets behind it, both or neither. After [ErrOvertaken] the
// batch is of no use and the offsets are to be read again. After another error the batch
// may be applied again; if its commit had got through, that is [ErrOvertaken].
func (s *Store) Apply(ctx context.Context, b *Batch) (done Result, err error) {
	for _, careful := range []bool{false, true} {
		err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) (err error) {
			done, err = s.apply(t, b, careful)
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

// apply does the work of Apply in a transaction. Rows that are there are only looked for if
// it is careful; otherwise they end it with errMet, which is rare.
func (s *Store) apply(t *transaction, b *Batch, careful bool) (done Result, err error) {
	if err := advance(t, b.Topic, b.ends); err != nil {
		return done, err
	}
	if err := s.at("offsets"); err != nil {
		return done, err
	}
	runs, err := t.boardRuns(b.all())
	if err != nil {
		return done, err
	}
	updates, conflict := b.updates, t.d.ignore
	done = Result{Repeats: b.repeats, Bad: len(b.bad)}
	if careful || b.mixed || runs.meet(updates) {
		c := settling{s: s, t: t, runs: runs, now: time.Now().UnixMilli(), done: &done}
		if updates, err = c.settle(updates); err != nil {
			return done, err
		}
		conflict = ""
	}
	if err := s.write(t, updates, runs, conflict); err != nil {
		return done, err
	}
	done.Rows += len(updates)
	return done, keepBad(t, b)
}

// write writes changes that meet no other row, what members have after them, and the state
// of their boards.
func (s *Store) write(t *transaction, updates []*wire.LedgerUpdate, runs runsOf, conflict string) error {
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
	if err := t.save(runs); err != nil {
		return err
	}
	return s.at("boards")
}

// keepBad writes the batch's bad records.
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
	_, err := t.d.insert("rank_bad", "", texts("topic", topic), ints("part", part), ints("record", record), texts("reason", reason), column{"value", "bytea", value}).exec(t)
	return err
}

func bare(updates []*wire.LedgerUpdate) []*wire.Update {
	all := make([]*wire.Update, len(updates))
	for i, u := range updates {
		all[i] = &u.Update
	}
	return all
}

// InsertBare writes changes into rank_log and rank_score in one transaction and nothing
// else: what [Store.Apply] is measured against.
func (s *Store) InsertBare(ctx context.Context, updates []*wire.LedgerUpdate) error {
	return s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		all := bare(updates)
		if _, err := t.d.insert("rank_log", "", updateColumns(all)...).exec(t); err != nil {
			return err
		}
		_, err := t.d.insert("rank_score", t.d.newer, scoreColumns(all)...).exec(t)
		return err
	})
}
