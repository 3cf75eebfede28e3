package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strconv"
	"strings"
)

// database is what the parts of a Store share.
type database struct {
	db    *sql.DB
	d     *dialect
	fault func(step string) error // of tests; nil: none
}

// Close ends the connections.
func (s *database) Close() error { return s.db.Close() }

// Kind is "postgres" or "mysql".
func (s *database) Kind() string { return s.d.name }

// Ping checks that the database answers.
func (s *database) Ping(ctx context.Context) error { return s.db.PingContext(ctx) }

type transaction struct {
	ctx context.Context
	tx  *sql.Tx
	d   *dialect
}

// in runs work in a transaction of the isolation level, and commits it unless work fails.
func (s *database) in(ctx context.Context, level sql.IsolationLevel, work func(*transaction) error) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil { // the session is not what it should be: another one takes its place
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		return err
	}
	if err := work(&transaction{ctx, tx, s.d}); err != nil {
		return errors.Join(otherTables(err), rollback(tx))
	}
	return tx.Commit()
}

// rollback ends a transaction whose context may have ended it already.
func rollback(tx *sql.Tx) error {
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

// at stops where a test wants it to.
func (s *database) at(step string) error {
	if s.fault == nil {
		return nil
	}
	return s.fault(step)
}

// query is a statement under construction. Values never become part of its text.
type query struct {
	d    *dialect
	text strings.Builder
	args []any
}

func (d *dialect) query(parts ...string) *query {
	q := &query{d: d}
	return q.add(parts...)
}

func (q *query) add(parts ...string) *query {
	for _, part := range parts {
		q.text.WriteString(part)
	}
	return q
}

func (q *query) arg(value any) *query {
	q.args = append(q.args, value)
	if q.d.postgres {
		q.text.WriteString("$" + strconv.Itoa(len(q.args)))
	} else {
		q.text.WriteByte('?')
	}
	return q
}

// column is one column of a statement's rows: a slice of strings, numbers, bytes or pointers to them; nil is NULL.
type column struct {
	name, kind string // kind is the element type in PostgreSQL
	values     any
	n          int // how many values there are
	at         func(i int) any
}

func columnOf[T any](name, kind string, values []T) column {
	return column{name, kind, values, len(values), func(i int) any { return values[i] }}
}

func texts(name string, values []string) column      { return columnOf(name, "text", values) }
func someTexts(name string, values []*string) column { return columnOf(name, "text", values) }
func ints(name string, values []int64) column        { return columnOf(name, "bigint", values) }
func orNull(name string, values []*int64) column     { return columnOf(name, "bigint", values) }
func doubles(name string, values []*float64) column  { return columnOf(name, "float8", values) }

// rows appends the rows: one array a column for PostgreSQL, which parses once, else one list a row.
func (q *query) rows(cols ...column) *query {
	if q.d.postgres {
		q.add("SELECT * FROM unnest(")
		for i, c := range cols {
			if i > 0 {
				q.add(", ")
			}
			q.arg(c.values).add("::", c.kind, "[]")
		}
		return q.add(")")
	}
	for i := range cols[0].n {
		if i > 0 {
			q.text.WriteByte(',')
		}
		q.text.WriteByte('(')
		for j, c := range cols {
			if j > 0 {
				q.text.WriteByte(',')
			}
			q.arg(c.at(i))
		}
		q.text.WriteByte(')')
	}
	return q
}

func (d *dialect) insert(table, conflict string, cols ...column) *query {
	q := d.query("INSERT INTO ", table, " (", names(cols), ") ")
	if !d.postgres {
		q.add("VALUES ")
	}
	return q.rows(cols...).add(conflict)
}

// among appends the condition that a row has one of the keys.
func (q *query) among(cols ...column) *query {
	return q.add("(", names(cols), ") IN (").rows(cols...).add(")")
}

func names(cols []column) string {
	all := make([]string, len(cols))
	for i, c := range cols {
		all[i] = c.name
	}
	return strings.Join(all, ", ")
}

// exec runs the statement and returns how many rows it changed.
func (q *query) exec(t *transaction) (int64, error) {
	result, err := t.tx.ExecContext(t.ctx, q.text.String(), q.args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// each runs the statement in a transaction of its own and calls scan for each row.
func (s *database) each(ctx context.Context, q *query, scan func(row *sql.Rows) error) error {
	return s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error { return q.each(t, scan) })
}

// each runs the statement and calls scan for each row.
func (q *query) each(t *transaction, scan func(row *sql.Rows) error) error {
	rows, err := t.tx.QueryContext(t.ctx, q.text.String(), q.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (t *transaction) execAll(all ...*query) error {
	for _, q := range all {
		if _, err := q.exec(t); err != nil {
			return err
		}
	}
	return nil
}
