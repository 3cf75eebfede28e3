package ledger

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
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

// ErrSchema reports tables of another version than this program's.
var ErrSchema = errors.New("the ledger's tables are of another version")

// otherTables names the cause of an error about tables or columns that are not there.
func otherTables(err error) error {
	p, _ := errors.AsType[*pgconn.PgError](err)
	m, _ := errors.AsType[*mysql.MySQLError](err)
	if p != nil && (p.Code == "42P01" || p.Code == "42703") || m != nil && (m.Number == 1146 || m.Number == 1054) {
		return fmt.Errorf("%w: run rankcache ledger migrate, and programs of one version: %w", ErrSchema, err)
	}
	return err
}

// tooLarge reports whether statements may be too much at once: MariaDB closes the connection before it tells.
func tooLarge(err error) bool {
	p, _ := errors.AsType[*pgconn.PgError](err)
	m, _ := errors.AsType[*mysql.MySQLError](err)
	return errors.Is(err, mysql.ErrPktTooLarge) || errors.Is(err, driver.ErrBadConn) || p != nil && (strings.HasPrefix(p.Code, "54") || p.Code == "53200") ||
		m != nil && (m.Number == 1153 || m.Number == 1301 || m.Number == 1390)
}

// isThere reports whether MariaDB or MySQL has made the column, index or constraint, or dropped the column.
func isThere(err error) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && (e.Number == 1060 || e.Number == 1061 || e.Number == 1091 || e.Number == 1826 || e.Number == 3822)
}

func isDenied(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "42501"
	}
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && (e.Number == 1142 || e.Number == 1143)
}
