package ledger

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"
)

// dialect is what PostgreSQL and MariaDB write differently.
type dialect struct {
	name     string // as it is shown: postgres, mysql
	postgres bool
	// ignore keeps the row that is there, newer the higher run and seq; replace overwrites a row of rank_board.
	ignore, newer, replace string
	lock, unlock           string // of the migrations, for a connection
	tryLock                string // the same lock, or 0 at once
	// rankIndex makes the index of [Ranks] while rows are written; there counts a usable one, drop removes a partial.
	rankIndex, rankIndexThere, dropRankIndex string
}

var postgres = &dialect{
	name: "postgres", postgres: true,
	ignore: " ON CONFLICT DO NOTHING",
	newer: ` ON CONFLICT (board, member) DO UPDATE SET run = excluded.run, seq = excluded.seq, score = excluded.score, raw = excluded.raw, data = excluded.data, veil = excluded.veil
 WHERE (rank_score.run, rank_score.seq) < (excluded.run, excluded.seq)`,
	replace: ` ON CONFLICT (board, run) DO UPDATE SET class = excluded.class, dims = excluded.dims, tag = excluded.tag, base_run = excluded.base_run,
 begin_seq = excluded.begin_seq, first_seq = excluded.first_seq, after_run = excluded.after_run, end_seq = excluded.end_seq, seq = excluded.seq, sum = excluded.sum, members = excluded.members, at = excluded.at,
 eras = excluded.eras, part = excluded.part`,
	lock: "SELECT 1 FROM pg_advisory_lock(7311930021)", unlock: "SELECT pg_advisory_unlock(7311930021)",
	tryLock:        "SELECT pg_try_advisory_lock(7311930021)::int",
	rankIndex:      "CREATE INDEX CONCURRENTLY IF NOT EXISTS rank_score_order ON rank_score (board, raw, member)",
	rankIndexThere: "SELECT count(*) FROM pg_index WHERE indisvalid AND indexrelid = to_regclass('rank_score_order')",
	dropRankIndex:  "DROP INDEX CONCURRENTLY IF EXISTS rank_score_order",
}

// MariaDB and MySQL evaluate the assignments from left to right, so run comes last.
var mysqlDialect = &dialect{
	name:   "mysql",
	ignore: " ON DUPLICATE KEY UPDATE run = rank_log.run",
	newer: ` ON DUPLICATE KEY UPDATE
 score = IF(VALUES(run) > rank_score.run OR VALUES(run) = rank_score.run AND VALUES(seq) > rank_score.seq, VALUES(score), rank_score.score),
 raw = IF(VALUES(run) > rank_score.run OR VALUES(run) = rank_score.run AND VALUES(seq) > rank_score.seq, VALUES(raw), rank_score.raw),
 data = IF(VALUES(run) > rank_score.run OR VALUES(run) = rank_score.run AND VALUES(seq) > rank_score.seq, VALUES(data), rank_score.data),
 veil = IF(VALUES(run) > rank_score.run OR VALUES(run) = rank_score.run AND VALUES(seq) > rank_score.seq, VALUES(veil), rank_score.veil),
 seq = IF(VALUES(run) > rank_score.run OR VALUES(run) = rank_score.run AND VALUES(seq) > rank_score.seq, VALUES(seq), rank_score.seq),
 run = GREATEST(rank_score.run, VALUES(run))`,
	replace: ` ON DUPLICATE KEY UPDATE class = VALUES(class), dims = VALUES(dims), tag = VALUES(tag), base_run = VALUES(base_run), begin_seq = VALUES(begin_seq),
 first_seq = VALUES(first_seq), after_run = VALUES(after_run), end_seq = VALUES(end_seq), seq = VALUES(seq), sum = VALUES(sum), members = VALUES(members), at = VALUES(at),
 eras = VALUES(eras), part = VALUES(part)`,
	lock: "SELECT GET_LOCK('rankcache_ledger', 60)", unlock: "SELECT RELEASE_LOCK('rankcache_ledger')",
	tryLock:        "SELECT GET_LOCK('rankcache_ledger', 0)",
	rankIndex:      "ALTER TABLE rank_score ADD INDEX rank_score_order (board, raw, member), ALGORITHM=INPLACE, LOCK=NONE",
	rankIndexThere: "SELECT count(DISTINCT index_name) FROM information_schema.statistics WHERE table_schema = database() AND table_name = 'rank_score' AND index_name = 'rank_score_order'",
}

// column is one column of a statement's rows: a slice of strings, numbers, bytes or pointers to them; nil is NULL.
type column struct {
	name, kind string // kind is the element type in PostgreSQL
	values     any
}

func texts(name string, values []string) column     { return column{name, "text", values} }
func ints(name string, values []int64) column       { return column{name, "bigint", values} }
func orNull(name string, values []*int64) column    { return column{name, "bigint", values} }
func doubles(name string, values []*float64) column { return column{name, "float8", values} }

func (c column) len() int {
	switch v := c.values.(type) {
	case []string:
		return len(v)
	case []int64:
		return len(v)
	case []*int64:
		return len(v)
	case []*float64:
		return len(v)
	case []*string:
		return len(v)
	case [][]byte:
		return len(v)
	}
	panic(fmt.Sprintf("ledger: column of %T", c.values))
}

func (c column) at(i int) any {
	switch v := c.values.(type) {
	case []string:
		return v[i]
	case []int64:
		return v[i]
	case []*int64:
		return v[i]
	case []*float64:
		return v[i]
	case []*string:
		return v[i]
	case [][]byte:
		return v[i]
	}
	panic(fmt.Sprintf("ledger: column of %T", c.values))
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
	for i := range cols[0].len() {
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

func (d *dialect) schema() string {
	if d.postgres {
		return "current_schema()"
	}
	return "database()"
}

// asInt gives a placeholder its type where it can't be deduced.
func (d *dialect) asInt() string {
	if d.postgres {
		return "::bigint"
	}
	return ""
}
