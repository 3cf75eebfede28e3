package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"rankcache"
	"rankcache/wire"
)

var ErrFinalThere = errors.New("the board has a final") // reports a final that was to be saved a second time

// Final is the result of a closed board as it is kept.
type Final struct {
	wire.Final
	MadeAt int64             // Unix milliseconds
	Kept   int               // how many of its places are kept, the first ones; set by what reads it
	Rows   []rankcache.Entry // the places that [results.SaveFinal] keeps; nil: those of Top
}

// results keeps the finals of closed boards: heads in rank_final_board, rows in rank_final. They are never changed.
type results struct{ *database }

// Latest returns the state after the latest change of a board. The error wraps [ErrNoBoard] if there is none.
func (s results) Latest(ctx context.Context, board rankcache.BoardID) (rankcache.State, error) {
	p := Proof{Board: board}
	err := s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		_, err := proofState(t, &p)
		return err
	})
	return p.State, err
}

// EachMember calls fn for each member of a board, joined with its data, in the order of its bytes, all of one moment.
func (s results) EachMember(ctx context.Context, board rankcache.BoardID, fn func(rankcache.Entry) error) error {
	return s.in(ctx, sql.LevelRepeatableRead, func(t *transaction) error {
		base, err := proofState(t, &Proof{Board: board})
		if errors.Is(err, ErrNoBoard) {
			return nil
		}
		if err != nil {
			return err
		}
		return t.entries(t.d.query("SELECT member, raw, data FROM rank_score WHERE board = ").arg(string(board)).add(" AND run >= ").arg(base).add(" AND raw IS NOT NULL ORDER BY member"), fn)
	})
}

// SaveFinal keeps a final. The error wraps [ErrFinalThere] if the board has one.
func (s results) SaveFinal(ctx context.Context, f *Final) error {
	return s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		found, err := finals(t, finalOf(t.d, f.Board))
		if err == nil && len(found) > 0 {
			err = fmt.Errorf("%w: %s", ErrFinalThere, f.Board)
		}
		if err != nil {
			return err
		}
		return t.saveFinal(f)
	})
}

func (t *transaction) saveFinal(f *Final) error {
	rows := f.Rows
	if rows == nil {
		rows = f.Top
	}
	if _, err := t.d.insert("rank_final_board", "", append(finalColumns(f), ints("kept", []int64{int64(len(rows))}))...).exec(t); err != nil {
		return err
	}
	for first := 0; first < len(rows); first += MaxBatch {
		if err := t.saveRows(f, first, rows[first:min(first+MaxBatch, len(rows))]); err != nil {
			return err
		}
	}
	return nil
}

// saveRows writes places of a final, those behind the first ones.
func (t *transaction) saveRows(f *Final, first int, rows []rankcache.Entry) error {
	n := len(rows)
	board, place, member, end := make([]string, n), make([]int64, n), make([]string, n), make([]int64, n)
	score, raw, data := make([]*float64, n), make([]*float64, n), make([]*string, n)
	for i := range rows {
		e := &rows[i]
		name, text := rankcache.SplitData(e.Member)
		board[i], place[i], member[i], end[i] = string(f.Board), int64(first+i+1), name, f.End
		score[i], raw[i], data[i] = new(f.Form.Shown(e.Score)), &e.Score, textOf(text)
	}
	cols := []column{texts("board", board), ints("place", place), texts("member", member), doubles("score", score), doubles("raw", raw), ints("end_at", end)}
	_, err := t.d.insert("rank_final", "", withSome(cols, someTexts("data", data))...).exec(t)
	return err
}

// FinalOf returns the head of a board's final and its rows from place start+1 on, limit at most; nil if there is none.
func (s results) FinalOf(ctx context.Context, board rankcache.BoardID, start, limit int) (*Final, error) {
	return s.final(ctx, finalOf(s.d, board), start, limit)
}

// FinalAt is FinalOf for the board of a class, dimensions and tag.
func (s results) FinalAt(ctx context.Context, class string, dims map[string]string, tag string, start, limit int) (*Final, error) {
	q := selectFinals(s.d, "").add(" WHERE class = ").arg(class).add(" AND tag = ").arg(tag).add(" AND dims = ").arg(string(wire.AppendDims(nil, dims)))
	return s.final(ctx, q, start, limit)
}

func (s results) final(ctx context.Context, q *query, start, limit int) (f *Final, err error) {
	err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		found, err := finals(t, q)
		if err != nil || len(found) == 0 {
			return err
		}
		f = found[0]
		q := t.d.query("SELECT member, raw, data FROM rank_final WHERE board = ").arg(string(f.Board)).add(" AND place > ").arg(start).add(" ORDER BY place LIMIT ").arg(limit)
		return t.entries(q, func(e rankcache.Entry) error { f.Top = append(f.Top, e); return nil })
	})
	return f, err
}

// Finals returns the heads of a class's finals, the latest tag first, from behind a tag and board; "" begins.
func (s results) Finals(ctx context.Context, class, tag string, board rankcache.BoardID, limit int) (found []*Final, err error) {
	q := selectFinals(s.d, "").add(" WHERE class = ").arg(class)
	if tag != "" {
		q.add(" AND (tag < ").arg(tag).add(" OR tag = ").arg(tag).add(" AND board < ").arg(string(board)).add(")")
	}
	q.add(" ORDER BY tag DESC, board DESC LIMIT ").arg(limit)
	err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) (err error) {
		found, err = finals(t, q)
		return err
	})
	return found, err
}

// Place is where a member stands in a final, whose Top has it alone. Rank is 0 beyond the places that are kept.
type Place struct {
	*Final
	Rank int
}

// Places returns the finals in which a member is known to be, the latest end first, from behind an end (Unix ms, 0
// begins) and board. complete: it is in no other, as none keeps first places alone without scores.
func (s results) Places(ctx context.Context, member string, end int64, board rankcache.BoardID, limit int) (places []Place, complete bool, err error) {
	q := selectFinals(s.d, ", COALESCE(r.place, 0), COALESCE(r.raw, s.raw), COALESCE(CASE WHEN r.place IS NULL THEN s.data ELSE r.data END, '')").add(" LEFT JOIN rank_final r ON r.board = f.board AND r.member = ").arg(member).
		add(" LEFT JOIN rank_score s ON s.board = f.board AND s.member = ").arg(member).add(" AND ", cutShort, " AND s.run >= (SELECT MAX(b.base_run) FROM rank_board b WHERE b.board = f.board)",
		" WHERE (r.raw IS NOT NULL OR s.raw IS NOT NULL)")
	if end != 0 {
		q.add(" AND (f.end_at < ").arg(end).add(" OR f.end_at = ").arg(end).add(" AND f.board < ").arg(string(board)).add(")")
	}
	q.add(" ORDER BY f.end_at DESC, f.board DESC LIMIT ").arg(limit)
	err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		err := q.each(t, func(row *sql.Rows) error {
			p := Place{}
			var e rankcache.Entry
			var data string
			var err error
			if p.Final, err = scanFinal(row, &p.Rank, &e.Score, &data); err == nil {
				e.Member = rankcache.JoinData(member, data)
				p.Top = []rankcache.Entry{e}
				places = append(places, p)
			}
			return err
		})
		if err != nil {
			return err
		}
		complete = true
		q := t.d.query("SELECT 1 FROM rank_final_board f WHERE ", cutShort, " AND NOT EXISTS (SELECT 1 FROM rank_board b WHERE b.board = f.board) LIMIT 1")
		return q.each(t, func(*sql.Rows) error { complete = false; return nil })
	})
	return places, complete, err
}

const cutShort = "f.members > COALESCE(f.kept, 1000)" // the condition that a final f keeps its first places alone

func finalOf(d *dialect, board rankcache.BoardID) *query {
	return selectFinals(d, "").add(" WHERE f.board = ").arg(string(board))
}

// selectFinals begins a query for rows of scanFinal.
func selectFinals(d *dialect, more string) *query {
	return d.query("SELECT f.board, f.class, f.dims, f.tag, f.start_at, f.end_at, f.run, f.seq, f.sum, f.members, f.integers, f.file, f.made_at, COALESCE(f.kept, LEAST(f.members, 1000))", more, " FROM rank_final_board f")
}

func finals(t *transaction, q *query) (found []*Final, err error) {
	err = q.each(t, func(row *sql.Rows) error {
		f, err := scanFinal(row)
		found = append(found, f)
		return err
	})
	return found, err
}

func scanFinal(row *sql.Rows, more ...any) (*Final, error) {
	f := &Final{}
	f.HasSum = true
	var dims []byte
	err := row.Scan(append([]any{(*string)(&f.Board), &f.Class, &dims, &f.Tag, &f.Start, &f.End, &f.Run, &f.Seq, &f.Sum, &f.Members, &f.Form, &f.File, &f.MadeAt, &f.Kept}, more...)...)
	if err == nil {
		err = json.Unmarshal(dims, &f.Dims)
	}
	return f, err
}

// finalColumns returns the head of a final as the columns of rank_final_board.
func finalColumns(f *Final) []column {
	one := func(name string, n int64) column { return ints(name, []int64{n}) }
	text := func(name, value string) column { return texts(name, []string{value}) }
	return []column{text("board", string(f.Board)), text("class", f.Class), text("dims", string(wire.AppendDims(nil, f.Dims))), text("tag", f.Tag),
		one("start_at", f.Start), one("end_at", f.End), one("run", int64(f.Run)), one("seq", int64(f.Seq)), one("sum", int64(f.Sum)), // #nosec G115 -- below 2^63
		one("members", int64(f.Members)), one("integers", int64(f.Form)), text("file", f.File), one("made_at", f.MadeAt)}
}
