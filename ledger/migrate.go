package ledger

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"path"
	"strings"

	"rankcache/wire"
)

// The statements of each version, in the order of the files' names. What is released is
// never changed: a new version is a new file for both kinds of database.
//
//go:embed migrations
var migrations embed.FS

const schemaTable = "CREATE TABLE IF NOT EXISTS rank_schema (version int NOT NULL PRIMARY KEY)"

const rawVersion = 5 // the version whose tables have raw scores beside those that are shown

type schema struct{ *database }

// Wanted is the version of the tables that this program works with.
func (s schema) Wanted() int { return len(s.files()) }

func (s schema) files() []string {
	entries, _ := migrations.ReadDir("migrations/" + s.d.name) // embedded, so it is there
	files := make([]string, len(entries))
	for i, e := range entries {
		files[i] = path.Join("migrations", s.d.name, e.Name())
	}
	return files
}

// Version returns the version of the database's tables, 0 if there are none.
func (s schema) Version(ctx context.Context) (version int, err error) {
	var there int
	q := s.d.query("SELECT count(*) FROM information_schema.tables WHERE table_name = 'rank_schema' AND table_schema = ", s.d.schema())
	if err := s.db.QueryRowContext(ctx, q.text.String()).Scan(&there); err != nil || there == 0 {
		return 0, err
	}
	err = s.db.QueryRowContext(ctx, "SELECT COALESCE(MAX(version), 0) FROM rank_schema").Scan(&version)
	return version, err
}

// Migrate makes the tables, or brings older ones to this version, in turns. Right ones need no right to change any.
func (s schema) Migrate(ctx context.Context) error {
	version, err := s.Version(ctx)
	if err != nil || version == s.Wanted() {
		return err
	}
	conn, err := s.session(ctx) // a lock belongs to it
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := s.lock(ctx, conn); err != nil {
		return err
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), s.d.unlock) }() // the end of the connection unlocks as well
	if version, err = s.Version(ctx); err != nil {
		return err
	}
	if version > s.Wanted() {
		return fmt.Errorf("%w: version %d, this program knows %d: update it", ErrSchema, version, s.Wanted())
	}
	if _, err := conn.ExecContext(ctx, schemaTable); err != nil {
		return fmt.Errorf("making the ledger's tables: %w", err)
	}
	for i, file := range s.files()[version:] {
		if err := s.migrate(ctx, conn, version+i+1, file); err != nil {
			return fmt.Errorf("making the ledger's tables, version %d: %w", version+i+1, err)
		}
	}
	return nil
}

func (s schema) lock(ctx context.Context, conn *sql.Conn) error {
	var got sql.NullInt64
	if err := conn.QueryRowContext(ctx, s.d.lock).Scan(&got); err != nil {
		return err
	}
	if got.Int64 != 1 {
		return errors.New("another program has been changing the ledger's tables for a minute")
	}
	return nil
}

// migrate runs one version's statements. MariaDB commits each, so a crash has them repeated.
func (s schema) migrate(ctx context.Context, conn *sql.Conn, version int, file string) error {
	text, err := migrations.ReadFile(file)
	if err != nil {
		return err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for statement := range strings.SplitSeq(string(text), ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := tx.ExecContext(ctx, statement); err != nil && !isThere(err) {
			return errors.Join(err, rollback(tx))
		}
	}
	if version == rawVersion {
		if err := showScores(&transaction{ctx, tx, s.d}); err != nil {
			return errors.Join(err, rollback(tx))
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO rank_schema (version) VALUES (%d)", version)); err != nil {
		return errors.Join(err, rollback(tx))
	}
	return tx.Commit()
}

// prepare makes the tables, or only checks their version.
func (s schema) prepare(ctx context.Context, check bool) error {
	if check {
		return s.Check(ctx)
	}
	return s.Migrate(ctx)
}

// Check returns an error of [ErrSchema] unless the tables are of this program's version.
func (s schema) Check(ctx context.Context) error {
	version, err := s.Version(ctx)
	if err == nil && version != s.Wanted() {
		err = fmt.Errorf("%w: version %d, want %d: run rankcache ledger migrate", ErrSchema, version, s.Wanted())
	}
	return err
}

const scoresLooked = 1000 // how many scores with a fraction tell whether a class ranks ties

// showScores gives rows of classes with integer scores the shown ones, which versions before 5 lacked. Repeatable.
func showScores(t *transaction) error {
	classes := make(map[string]bool) // whether a final tells that the scores are integers
	q := t.d.query("SELECT DISTINCT b.class, f.class IS NOT NULL FROM rank_board b LEFT JOIN rank_final_board f ON f.class = b.class AND f.integers = 1 WHERE b.class <> ''")
	err := q.each(t, func(row *sql.Rows) error {
		var class string
		var integers bool
		err := row.Scan(&class, &integers)
		classes[class] = integers
		return err
	})
	if err != nil {
		return err
	}
	for class, integers := range classes {
		if !integers {
			if integers, err = hasTies(t, class); err != nil {
				return err
			}
		}
		if !integers {
			continue
		}
		if err := showClass(t, class); err != nil {
			return err
		}
	}
	return nil
}

// hasTies reports whether the scores of a class that are not whole have tie-breaks.
func hasTies(t *transaction, class string) (bool, error) {
	tied, others := 0, 0
	q := t.d.query("SELECT s.raw, b.seq FROM rank_score s JOIN (SELECT board, MAX(seq) AS seq FROM rank_board WHERE class = ").arg(class).
		add(" GROUP BY board) b ON b.board = s.board WHERE s.raw <> floor(s.raw) LIMIT ").arg(scoresLooked)
	err := q.each(t, func(row *sql.Rows) error {
		u := wire.Update{Op: wire.OpSet}
		err := row.Scan(&u.Score, &u.Seq)
		if wire.IsTied(&u) {
			tied++
		} else {
			others++
		}
		return err
	})
	return tied > 0 && others == 0, err
}

func showClass(t *transaction, class string) error {
	for table, set := range map[string]string{
		"rank_score": "score = floor(raw)",
		"rank_log":   "raw = COALESCE(raw, score), score = floor(COALESCE(raw, score))",
		"rank_lost":  "raw = COALESCE(raw, score), score = floor(COALESCE(raw, score)), now_score = floor(now_score)",
	} {
		_, err := t.d.query("UPDATE ", table, " SET ", set, " WHERE board IN (SELECT board FROM rank_board WHERE class = ").arg(class).add(")").exec(t)
		if err != nil {
			return err
		}
	}
	return nil
}
