package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"rankcache"
	"rankcache/internal/tick"
)

// Ranks are a board's members in order, best first, or its final's first places, as long as their [Snapshot].
type Ranks struct {
	Final *Final // the board's final, if that is what is read, without rows; else nil

	t      *transaction
	table  string // with the condition for the board's rows
	places bool   // rows have their place
	args   []any
	order  rankcache.Direction
	form   rankcache.ScoreForm
}

// Row is a member of a board: Score is shown, Raw is what Redis has. Data is what it has beside them, "" for nothing.
type Row struct {
	Member     string
	Score, Raw float64
	Data       string
}

// Ranks returns the members in an order. Raw scores that the form shows as the same are the same score.
func (v *Snapshot) Ranks(order rankcache.Direction, form rankcache.ScoreForm) *Ranks {
	return &Ranks{t: v.t, table: "rank_score WHERE raw IS NOT NULL AND run >= ", args: []any{v.base, string(v.Board)}, order: order, form: form}
}

// FinalRanks returns the first places of the board's final, nil if it has none.
func (v *Snapshot) FinalRanks(order rankcache.Direction, form rankcache.ScoreForm) (*Ranks, error) {
	found, err := finals(v.t, finalOf(v.t.d, v.Board))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &Ranks{Final: found[0], t: v.t, table: "rank_final WHERE place > ", places: order == rankcache.Descending, args: []any{0, string(v.Board)}, order: order, form: form}, nil
}

// of begins a query for rows of the board.
func (r *Ranks) of(selected string) *query {
	return r.t.d.query("SELECT ", selected, " FROM ", r.table).arg(r.args[0]).add(" AND board = ").arg(r.args[1])
}

// better is the comparison that a better raw score has with another.
func (r *Ranks) better() string {
	if r.order == rankcache.Ascending {
		return " < "
	}
	return " > "
}

// way is how the rows are sorted.
func (r *Ranks) way() string {
	if r.order == rankcache.Ascending {
		return ""
	}
	return " DESC"
}

// Rows returns up to limit rows from the 0-based start.
func (r *Ranks) Rows(start, limit int) ([]Row, error) {
	if r.places {
		return r.rows(r.of(rowColumns).add(" AND place > ").arg(start).add(" ORDER BY place LIMIT ").arg(limit))
	}
	way := r.way()
	return r.rows(r.of(rowColumns).add(" ORDER BY raw", way, ", member", way, " LIMIT ").arg(limit).add(" OFFSET ").arg(start))
}

const rowColumns = "member, score, raw, COALESCE(data, '') AS data" // those of rows, in the order of its scan

func (r *Ranks) rows(q *query) (rows []Row, err error) {
	err = q.each(r.t, func(row *sql.Rows) error {
		var one Row
		err := row.Scan(&one.Member, &one.Score, &one.Raw, &one.Data)
		rows = append(rows, one)
		return err
	})
	return rows, err
}

// Of returns a member and its rank, 0 if it is not there.
func (r *Ranks) Of(member string) (row Row, rank int, err error) {
	found, err := r.rows(r.of(rowColumns).add(" AND member = ").arg(member))
	if err != nil || len(found) == 0 {
		return Row{Member: member}, 0, err
	}
	row = found[0]
	if r.places {
		rank, err = r.count(r.of("place").add(" AND member = ").arg(member))
		return row, rank, err
	}
	better, err := r.count(r.of("count(*)").add(" AND raw", r.better()).arg(row.Raw))
	if err != nil {
		return row, 0, err
	}
	equal, err := r.count(r.of("count(*)").add(" AND raw = ").arg(row.Raw).add(" AND member", r.better()).arg(member))
	return row, better + equal + 1, err
}

// RankedRow is a row with its rank, and how many members have a better score.
type RankedRow struct {
	Row
	Rank, Ahead int
}

// OfAll returns those of the members that are there, by one pass over the rows, which is faster for many.
func (r *Ranks) OfAll(members []string) (map[string]RankedRow, error) {
	way, shown := r.way(), "raw"
	if r.form.Integer() {
		shown = "floor(raw)"
	}
	q := r.t.d.query("SELECT member, score, raw, data, place, better FROM (SELECT ", rowColumns, ", ROW_NUMBER() OVER (ORDER BY raw", way, ", member", way, ") AS place, RANK() OVER (ORDER BY ", shown, way, ") - 1 AS better FROM ", r.table).
		arg(r.args[0]).add(" AND board = ").arg(r.args[1]).add(") AS ranked WHERE ").among(texts("member", members))
	found := make(map[string]RankedRow, len(members))
	err := q.each(r.t, func(row *sql.Rows) error {
		var p RankedRow
		err := row.Scan(&p.Member, &p.Score, &p.Raw, &p.Data, &p.Rank, &p.Ahead)
		found[p.Member] = p
		return err
	})
	return found, err
}

// Score returns the score of a member of a board that is trimmed: that of its last change where it was driven out.
// known is false where that change is not kept; has tells whether the member has a score.
func (v *Snapshot) Score(member string) (row Row, has, known bool, err error) {
	var score, raw sql.NullFloat64
	var data sql.NullString
	q := v.of("SELECT COALESCE(s.score, " + beforeTrim("l.score") + "), COALESCE(s.raw, " + beforeTrim("COALESCE(l.raw, l.score)") + "), s.data FROM rank_score s").
		add(" AND member = ").arg(member)
	err = q.each(v.t, func(row *sql.Rows) error { has = true; return row.Scan(&score, &raw, &data) })
	return Row{member, score.Float64, raw.Float64, data.String}, has, raw.Valid || !has, err
}

// Ahead counts the members with a better score than a raw one.
func (r *Ranks) Ahead(raw float64) (int, error) {
	return r.count(r.beyond("count(*)", raw))
}

// Better returns a member with the nearest better score than a raw one, false if there is none.
func (r *Ranks) Better(than float64) (row Row, ok bool, err error) {
	nearest := ""
	if r.order == rankcache.Ascending {
		nearest = " DESC"
	}
	found, err := r.rows(r.beyond(rowColumns, than).add(" ORDER BY raw", nearest, " LIMIT 1"))
	if err != nil || len(found) == 0 {
		return row, false, err
	}
	return found[0], true, nil
}

// Between counts the rows before those with a raw score from least to most, and these.
func (r *Ranks) Between(least, most float64) (before, within int, err error) {
	bound := most
	if r.order == rankcache.Ascending {
		bound = least
	}
	before, err = r.count(r.of("count(*)").add(" AND raw", r.better()).arg(bound))
	if err == nil {
		within, err = r.count(r.of("count(*)").add(" AND raw >= ").arg(least).add(" AND raw <= ").arg(most))
	}
	return before, within, err
}

// beyond begins a query for rows with a better score than a raw one.
func (r *Ranks) beyond(selected string, raw float64) *query {
	q := r.of(selected)
	bound, included := r.form.Better(raw, r.order)
	if included {
		return q.add(" AND raw >= ").arg(bound)
	}
	return q.add(" AND raw", r.better()).arg(bound)
}

func (r *Ranks) count(q *query) (n int, err error) {
	err = q.each(r.t, func(row *sql.Rows) error { return row.Scan(&n) })
	return n, err
}

var ErrRankIndex = errors.New("the ledger has no index for reads") // reports that the index of [Ranks] is not there

// rankIndex is the index of [Ranks] on rank_score, of ledgers that serve reads alone: each change pays for it.
type rankIndex struct{ *database }

// HasRankIndex reports whether the index can be used.
func (s rankIndex) HasRankIndex(ctx context.Context) (bool, error) {
	var n int
	err := s.db.QueryRowContext(ctx, s.d.rankIndexThere).Scan(&n)
	return n > 0, err
}

// MakeRankIndex makes the index, which may take minutes, while rows are read and written. Several callers take turns.
func (s rankIndex) MakeRankIndex(ctx context.Context) error {
	if there, err := s.HasRankIndex(ctx); there || err != nil {
		return err
	}
	conn, err := s.session(ctx) // a lock belongs to it
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := s.awaitLock(ctx, conn); err != nil {
		return err
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), s.d.unlock) }()
	if there, err := s.HasRankIndex(ctx); there || err != nil {
		return err
	}
	if s.d.dropRankIndex != "" { // what an earlier attempt has left
		if _, err := conn.ExecContext(ctx, s.d.dropRankIndex); err != nil {
			return fmt.Errorf("making the index for reads: %w", err)
		}
	}
	if _, err := conn.ExecContext(ctx, s.d.rankIndex); err != nil && !isThere(err) {
		return fmt.Errorf("making the index for reads: %w: if this user may not, run rankcache ledger migrate --serve-reads as one who may", err)
	}
	return nil
}

// awaitLock polls: PostgreSQL does not finish an index without locks while another statement waits even for this.
func (s rankIndex) awaitLock(ctx context.Context, conn *sql.Conn) error {
	for range tick.NowAndEvery(ctx, time.Second) {
		var got sql.NullInt64
		err := conn.QueryRowContext(ctx, s.d.tryLock).Scan(&got)
		if err != nil || got.Int64 == 1 {
			return err
		}
	}
	return fmt.Errorf("waiting for another program that changes the ledger's tables: %w", ctx.Err())
}
