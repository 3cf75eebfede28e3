package ledger

import (
	"database/sql"

	"rankcache"
)

// Ranks are the members of a board in order, best first, or the first places of its final.
// They are valid as long as their [Snapshot].
type Ranks struct {
	// Final is the board's final, if that is what is read, without rows; else nil.
	Final *Final

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

// Ranks returns the members in an order. Raw scores that the form shows as the same are the same
// score.
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

// rowColumns are those of rows, in the order of its scan.
const rowColumns = "member, score, raw, COALESCE(data, '') AS data"

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

// OfAll returns those of the members that are there, by one pass over the rows. Of many members
// that is faster than [Ranks.Of] and [Ranks.Ahead] of each.
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
