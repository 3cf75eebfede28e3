package ledger

import (
	"context"
	"database/sql"
	"errors"

	"rankcache"
	"rankcache/wire"
)

// Snapshot is what the ledger has of a board at a moment. It lives as the function that got it, on its goroutine.
type Snapshot struct {
	Board      rankcache.BoardID
	State      rankcache.State // of the row with the highest seq; zero: the ledger has no row
	Begin      uint64          // first seq that the ledger has met; more than 1: it began later than the board
	First      uint64          // first seq that is kept
	Incomplete bool            // what a member had before a loss was removed as too old
	Pending    int             // changes that Redis does not have any more and that may be applied again
	Lost       int64           // the latest row of rank_lost
	Count      int             // members, as the latest change counts them
	Before     *Earlier        // the life before the board began again, nil if there is none

	base int64
	end  uint64 // changes from this seq on are left out; 0: none
	t    *transaction
}

type snapshots struct{ *database }

// Snapshot calls read with what the ledger has of the board at one moment.
func (s snapshots) Snapshot(ctx context.Context, board rankcache.BoardID, read func(*Snapshot) error) error {
	return s.in(ctx, sql.LevelRepeatableRead, func(t *transaction) error {
		v := &Snapshot{Board: board, t: t}
		if err := v.describe(); err != nil {
			return err
		}
		return read(v)
	})
}

func (v *Snapshot) describe() (err error) {
	p := Proof{Board: v.Board}
	if v.base, err = proofState(v.t, &p); err != nil && !errors.Is(err, ErrNoBoard) {
		return err
	}
	v.State, v.Begin, v.First, v.Incomplete, v.Count, v.Before = p.State, p.Begin, p.First, p.Incomplete, p.WantMembers, p.Earlier
	q := v.t.d.query("SELECT count(CASE WHEN ", isAside, " THEN 1 END), COALESCE(MAX(id), 0) FROM rank_lost WHERE board = ").arg(string(v.Board))
	return q.each(v.t, func(row *sql.Rows) error { return row.Scan(&v.Pending, &v.Lost) })
}

// Earlier counts the members of lives before the board began anew that are not its members now.
func (v *Snapshot) Earlier() (n int, err error) {
	q := v.t.d.query("SELECT count(*) FROM rank_score WHERE board = ").arg(string(v.Board)).add(" AND run < ").arg(v.base).add(" AND raw IS NOT NULL")
	err = q.each(v.t, func(row *sql.Rows) error { return row.Scan(&n) })
	return n, err
}

// Prove compares what the ledger has of the board with itself.
func (v *Snapshot) Prove() (*Proof, error) { return prove(v.t, v.Board) }

// behind is a condition for the kept rows of the board's life that follow a place; 0: all.
func (v *Snapshot) behind(q *query, place rankcache.State) *query {
	run, seq := max(int64(place.Run), v.base), int64(place.Seq)
	q.add(" WHERE board = ").arg(string(v.Board)).add(" AND run >= ").arg(run).add(" AND (run > ").arg(run).add(" OR seq > ").arg(seq).add(")")
	return v.within(q)
}

// within adds that a row of the board's life is not left out.
func (v *Snapshot) within(q *query) *query {
	if v.end > 0 {
		q.add(" AND seq < ").arg(int64(v.end)) // #nosec G115 -- below 2^63
	}
	return q
}

// Missing returns how many changes behind a place without gaps are not there; the zero place: of all kept.
func (v *Snapshot) Missing(place rankcache.State) (uint64, error) {
	first, rows := max(v.First, place.Seq+1), uint64(0)
	err := v.behind(v.t.d.query("SELECT count(*) FROM rank_log"), place).each(v.t, func(row *sql.Rows) error { return row.Scan(&rows) })
	if first > v.State.Seq {
		return 0, err
	}
	want := v.State.Seq - first + 1
	return want - min(rows, want), err
}

// of selects from the rows of the board's life.
func (v *Snapshot) of(selected string) *query {
	return v.t.d.query(selected, " WHERE board = ").arg(string(v.Board)).add(" AND run >= ").arg(v.base)
}

// Changes calls fn for each change behind a place, from a Unix millisecond on, in Redis's sequence.
func (v *Snapshot) Changes(place rankcache.State, since int64, fn func(*wire.Update) error) error {
	q := v.behind(v.t.d.query("SELECT ", logColumns, " FROM rank_log"), place).add(" AND at >= ").arg(since).add(" ORDER BY run, seq")
	return q.each(v.t, updatesTo(fn))
}

// AllChanges calls fn for each change of the board and its earlier lives from a Unix millisecond on.
func (v *Snapshot) AllChanges(since int64, fn func(*wire.Update) error) error {
	q := v.t.d.query("SELECT ", logColumns, " FROM rank_log WHERE board = ").arg(string(v.Board)).add(" AND at >= ").arg(since)
	if v.end > 0 {
		q.add(" AND (run < ").arg(v.base).add(" OR seq < ").arg(int64(v.end)).add(")") // #nosec G115 -- below 2^63
	}
	return q.add(" ORDER BY run, seq").each(v.t, updatesTo(fn))
}

// EndAtGap has the snapshot end before the first missing change, if the next is no older than since, in Unix
// milliseconds: Redis lost it with its writer. What is behind has effect without order ids, and would count twice; the
// command topic has it.
func (v *Snapshot) EndAtGap(since int64) error {
	missing, err := v.Missing(rankcache.State{})
	if err != nil || missing == 0 {
		return err
	}
	late, err := v.seq(v.of("SELECT MIN(seq) FROM rank_log").add(" AND at >= ").arg(since))
	if err != nil || late == 0 {
		return err
	}
	q := v.of("SELECT MIN(seq) FROM (SELECT seq, at, LAG(seq) OVER (ORDER BY seq) AS before_it FROM rank_log").add(" AND seq >= ").arg(late - 1).
		add(") AS l WHERE at >= ").arg(since).add(" AND (before_it <> seq - 1 OR before_it IS NULL AND seq > ").arg(int64(v.First)).add(")") // #nosec G115 -- below 2^63
	end, err := v.seq(q)
	if err != nil || end == 0 {
		return err
	}
	last, err := v.seq(v.of("SELECT MAX(seq) FROM rank_log").add(" AND seq < ").arg(end))
	if err == nil && last > 0 {
		v.State.Seq, v.end = uint64(last), uint64(end) // #nosec G115 -- stored from uint64
	}
	return err
}

// seq returns the one number that a query selects, 0 for none.
func (v *Snapshot) seq(q *query) (int64, error) {
	var n sql.NullInt64
	err := q.each(v.t, func(row *sql.Rows) error { return row.Scan(&n) })
	return n.Int64, err
}

// Known is what the ledger knows of a board at a glance.
type Known struct {
	Board rankcache.BoardID
	State rankcache.State // run and seq alone
	At    int64           // of its last change, in Unix milliseconds
	Final bool            // it has one
}

// Known returns up to n boards that follow one, in the order of their bytes.
func (s snapshots) Known(ctx context.Context, after rankcache.BoardID, n int) ([]Known, error) {
	return s.known(ctx, ">", after, n)
}

// KnownBoard returns a board, whose run is 0 if the ledger does not have it.
func (s snapshots) KnownBoard(ctx context.Context, board rankcache.BoardID) (k Known, err error) {
	found, err := s.known(ctx, "=", board, 1)
	if len(found) > 0 {
		k = found[0]
	}
	return k, err
}

func (s snapshots) known(ctx context.Context, compared string, board rankcache.BoardID, n int) (found []Known, err error) {
	q := s.d.query("SELECT board, run, seq, at, CASE WHEN EXISTS (SELECT 1 FROM rank_final_board f WHERE f.board = b.board) THEN 1 ELSE 0 END FROM rank_board b WHERE board ", compared, " ").arg(string(board)).
		add(" AND run = (SELECT MAX(run) FROM rank_board x WHERE x.board = b.board AND end_seq > 0) ORDER BY board LIMIT ").arg(n)
	err = s.each(ctx, q, func(row *sql.Rows) error {
		var k Known
		err := row.Scan((*string)(&k.Board), &k.State.Run, &k.State.Seq, &k.At, &k.Final)
		found = append(found, k)
		return err
	})
	return found, err
}
