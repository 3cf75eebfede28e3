package reconcile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"rankcache"
	"rankcache/ledger"
	"rankcache/wire"
)

var ErrQuery = errors.New("the query of the books") // reports a query of the books that can't be used

// Books are the business's records of orders in another database, which is only read. Concurrent use is safe.
type Books struct {
	db       *sql.DB
	query    string
	patience time.Duration
}

const booksPatience = 2 * time.Minute // how long the query of one slice of time may take, its rows included

// NewBooks returns the books in a database that the caller closes. The query has two parameters, the first time and the
// time behind the last in Unix milliseconds, and a row of [Columns] for each order and member.
func NewBooks(db *sql.DB, query string) *Books { return &Books{db, query, booksPatience} }

// Columns of the query of the books: board, or class and dims, and all of the others.
const Columns = "order_id, board or class and dims (a JSON object of texts), member, op (incr, set or delete), number, at (Unix milliseconds)"

// Row is an order as the books have it.
type Row struct {
	Order  string            `json:"order"`
	Board  rankcache.BoardID `json:"board,omitempty"`
	Class  string            `json:"class,omitempty"`
	Dims   map[string]string `json:"dims,omitempty"`
	Member string            `json:"member"`
	Change
	unnumbered bool // number is NULL
}

// Change is what an order does to its member's score.
type Change struct {
	Op     string  `json:"op"`
	Number float64 `json:"number"` // what an incr adds, or the score of a set or best
	At     int64   `json:"at"`     // Unix milliseconds
}

func (r *Row) class() ledger.BoardClass {
	if r.Class == "" {
		return ledger.BoardClass{}
	}
	return ledger.BoardClass{Name: r.Class, Dims: string(wire.AppendDims(nil, r.Dims))}
}

// check returns why a row can't be a command, nil if it can.
func (r *Row) check() error {
	op, err := wire.ParseOp(r.Op)
	if r.Class == "" {
		err = errors.Join(err, r.Board.Check())
	}
	if op == wire.OpDelete {
		r.Number = 0
	} else if r.unnumbered {
		err = errors.Join(err, errors.New("number is NULL: want what an incr adds, or the score of a set or best"))
	}
	return errors.Join(err, rankcache.CheckMember(r.Member), wire.CheckOrderID(r.Order), rankcache.CheckScore(r.Number))
}

func (r *Row) command() *wire.LedgerUpdate {
	op, _ := wire.ParseOp(r.Op) // checked
	u := &wire.LedgerUpdate{Class: r.Class, Dims: r.Dims, Update: wire.Update{Board: r.Board, Member: r.Member, Op: op, OrderID: r.Order, At: r.At}}
	if op == wire.OpIncr {
		u.Delta = r.Number
	} else {
		u.Score, u.Delta = r.Number, r.Number // delta of a best alone
	}
	return u
}

// Each calls fn for each row of a time, in the database's order, read-only. fn owns the row.
func (b *Books) Each(ctx context.Context, from, to int64, fn func(*Row) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	defer func() {
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("%w takes longer than %v: check that its time has an index, and locks: %w", ErrQuery, b.patience, err)
		}
	}()
	tx, err := b.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("the books: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // it has changed nothing
	rows, err := tx.QueryContext(ctx, b.query, from, to)
	if err != nil {
		return fmt.Errorf("%w fails: %w: want two parameters (from, to) and columns %s", ErrQuery, err, Columns)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrQuery, err)
	}
	scan, err := newScanner(names)
	for err == nil && rows.Next() {
		var r *Row
		if r, err = scan.row(rows); err == nil {
			err = fn(r)
		}
	}
	return errors.Join(err, rows.Err())
}

// Check asks for the orders of no time, which tells whether the user may and the query can be used.
func (b *Books) Check(ctx context.Context) error {
	return b.Each(ctx, 0, 0, func(*Row) error { return nil })
}

// scanner reads rows whose columns stand in any order.
type scanner struct {
	to      []any
	columns struct {
		order, board, class, dims, member, op sql.NullString
		number                                sql.NullFloat64
		at                                    sql.NullInt64
	}
}

func newScanner(names []string) (*scanner, error) {
	s := &scanner{}
	r := &s.columns
	known := map[string]any{"order_id": &r.order, "board": &r.board, "class": &r.class, "dims": &r.dims, "member": &r.member, "op": &r.op, "number": &r.number, "at": &r.at}
	for _, name := range names {
		to, ok := known[strings.ToLower(name)]
		if !ok || slices.Contains(s.to, to) {
			return nil, fmt.Errorf("%w returns the column %.40q: want %s", ErrQuery, name, Columns)
		}
		s.to = append(s.to, to)
	}
	for _, name := range []string{"order_id", "member", "op", "number", "at"} {
		if !slices.Contains(s.to, known[name]) {
			return nil, fmt.Errorf("%w returns no column %s: want %s", ErrQuery, name, Columns)
		}
	}
	if !slices.Contains(s.to, known["board"]) && (!slices.Contains(s.to, known["class"]) || !slices.Contains(s.to, known["dims"])) {
		return nil, fmt.Errorf("%w returns neither board nor class and dims: want %s", ErrQuery, Columns)
	}
	return s, nil
}

func (s *scanner) row(rows *sql.Rows) (*Row, error) {
	if err := rows.Scan(s.to...); err != nil {
		return nil, fmt.Errorf("%w: a row can't be read: %w: want %s", ErrQuery, err, Columns)
	}
	c := &s.columns
	r := &Row{Order: c.order.String, Board: rankcache.BoardID(c.board.String), Member: c.member.String,
		Change: Change{c.op.String, c.number.Float64, c.at.Int64}, unnumbered: !c.number.Valid}
	if r.Board != "" {
		return r, nil
	}
	r.Class = c.class.String
	if c.dims.String == "" {
		return r, nil
	}
	if err := wire.DecodeStrict([]byte(c.dims.String), &r.Dims); err != nil {
		return nil, fmt.Errorf("%w: dims of order %.40q: %w: want a JSON object of texts", ErrQuery, r.Order, err)
	}
	return r, nil
}
