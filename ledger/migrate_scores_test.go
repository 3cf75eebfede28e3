package ledger

import (
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// tie sets a member's score on a board that ranks ties.
func (h *history) tie(member string, score float64, last bool) *wire.LedgerUpdate {
	u := h.change(wire.OpSet, member, wire.TieScore(score, h.seq+1, last), fmt.Sprintf("o-%d-%d", h.run, h.seq+1))
	u.Form = rankcache.ScoreInteger
	return u
}

// newOldStore returns a ledger whose tables are of the last version with one score alone.
func newOldStore(t *testing.T, kind string) *Store {
	t.Helper()
	s, err := Open(testkit.Database(t, kind), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	must(t, migrateTo(t, s, rawVersion-1))
	return s
}

// migrateTo brings tables to a version, as earlier programs did.
func migrateTo(t *testing.T, s *Store, version int) error {
	conn, err := s.db.Conn(t.Context())
	must(t, err)
	defer conn.Close()
	_, err = conn.ExecContext(t.Context(), schemaTable)
	must(t, err)
	for i, file := range s.files()[:version] {
		if err := s.migrate(t.Context(), conn, i+1, file); err != nil {
			return err
		}
	}
	return nil
}

// old returns the columns of an earlier program, whose score is the raw one.
func old(cols []column) (all []column) {
	for _, c := range cols {
		switch c.name {
		case "score", "after_run", "end_seq", "by_groups", "eras", "part":
		case "raw":
			all = append(all, doubles("score", c.values.([]*float64)))
		default:
			all = append(all, c)
		}
	}
	return all
}

var noLineage = strings.NewReplacer(",\n eras = excluded.eras, part = excluded.part", "", ",\n eras = VALUES(eras), part = VALUES(part)", "", " after_run = excluded.after_run, end_seq = excluded.end_seq,", "", " after_run = VALUES(after_run), end_seq = VALUES(end_seq),", "")

var rawNewer = regexp.MustCompile(`\n (raw|data|veil) = .*`)

// writeOld writes changes as an earlier program did.
func writeOld(t *testing.T, s *Store, updates ...*wire.LedgerUpdate) error {
	return s.in(t.Context(), sql.LevelReadCommitted, func(tx *transaction) error {
		runs := make(runsOf)
		for _, u := range updates {
			runs.add(u)
		}
		for _, of := range runs {
			_, err := s.d.insert("rank_board", noLineage.Replace(s.d.replace), old(boardColumns(of))...).exec(tx)
			must(t, err)
		}
		if _, err := s.d.insert("rank_log", "", old(updateColumns(bare(updates)))...).exec(tx); err != nil {
			return err
		}
		newer := strings.Replace(rawNewer.ReplaceAllString(s.d.newer, ""), ", raw = excluded.raw, data = excluded.data, veil = excluded.veil", "", 1)
		_, err := s.d.insert("rank_score", newer, old(scoreColumns(bare(updates)))...).exec(tx)
		return err
	})
}

// scoresIn returns the rows of a table as "board member score raw".
func scoresIn(t *testing.T, s *Store, table, order string) (rows []string) {
	t.Helper()
	selectRows(t, s, "SELECT board, member, score, raw FROM "+table+" ORDER BY board, "+order, func(row *sql.Rows) error {
		var board, member string
		var score, raw sql.NullFloat64
		err := row.Scan(&board, &member, &score, &raw)
		text := fmt.Sprint(board, " ", member, " ", score.Float64)
		switch {
		case !score.Valid:
			text = board + " " + member + " gone"
		case !raw.Valid:
			text += " none"
		default:
			text += fmt.Sprint(" ", raw.Float64)
		}
		rows = append(rows, text)
		return err
	})
	return rows
}

// TestScoresOfEarlierVersions: rows of classes that ranked ties get the scores that were shown, others keep theirs, all are
// proved as before, and it does no harm if that is done twice, as after a crash.
func TestScoresOfEarlierVersions(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			s := newOldStore(t, kind)
			tied, times, marked := newHistory("tied", 1), newHistory("times", 1), newHistory("marked", 1)
			of := func(class string, u *wire.LedgerUpdate) *wire.LedgerUpdate { u.Class = class; return u }
			must(t, writeOld(t, s, of("race", tied.tie("a", 10, false)), of("race", tied.tie("b", -3, false)), of("race", tied.change(wire.OpDelete, "a", 0, "gone")),
				of("laps", times.incr("a", 12.34)), of("laps", times.incr("b", 5)), of("shown", marked.incr("a", 7.5))))
			exec := func(text string) { _, err := s.db.ExecContext(t.Context(), text); must(t, err) }
			exec("INSERT INTO rank_lost (board, run, seq, member, op, score, members, at, lost_at, now_score) VALUES ('tied', 1, 9, 'b', 'set', 8.999999999990905, 1, 1, 1, 7.999999999990905)")
			for board, integers := range map[string]int{"f1": 1, "f0": 0} {
				class := map[string]string{"f1": "shown", "f0": "laps"}[board]
				exec(fmt.Sprintf("INSERT INTO rank_final_board VALUES ('%s', '%s', '{}', 't', 1, 2, 1, 1, 1, 1, %d, 'file', 3)", board, class, integers))
				exec(fmt.Sprintf("INSERT INTO rank_final (board, place, member, score, end_at) VALUES ('%s', 1, 'm', 10.999999999998181, 2)", board))
			}
			must(t, s.Migrate(t.Context()))
			if kind == "mysql" { // PostgreSQL does it all or nothing
				exec("DELETE FROM rank_schema WHERE version = 5")
				must(t, s.Migrate(t.Context()))
			}
			b := wire.TieScore(-3, 2, false)
			for table, want := range map[string]string{
				"rank_score": fmt.Sprint("marked a 7 7.5|tied a gone|tied b -3 ", b, "|times a 12.34 12.34|times b 5 5"),
				"rank_log":   fmt.Sprint("marked a 7 7.5|tied a 10 ", wire.TieScore(10, 1, false), "|tied a gone|tied b -3 ", b, "|times a 12.34 none|times b 5 none"),
				"rank_lost":  "tied b 8 8.999999999990905",
				"rank_final": "f0 m 10.999999999998181 10.999999999998181|f1 m 10 10.999999999998181",
			} {
				order := map[bool]string{true: "member, seq", false: "member"}[table == "rank_log"]
				if diff := cmp.Diff(strings.Split(want, "|"), scoresIn(t, s, table, order)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", table, diff)
				}
			}
			if n := count(t, s, "rank_lost WHERE now_score = 7"); n != 1 {
				t.Errorf("%d lost rows have the score that is shown instead", n)
			}
			for _, h := range []*history{tied, times, marked} {
				if p, err := s.Prove(t.Context(), h.board); err != nil || !p.whole() {
					t.Errorf("%s: %v, %v", h.board, p, err)
				}
			}
			// What is written now stands beside what was.
			must(t, s.Begin(t.Context(), "topic", 0, 0))
			feed(t, s, 0, of("race", tied.tie("c", 4, false)), of("laps", times.incr("a", 0.5)))
			wantScores(t, s, tied)
			wantScores(t, s, times)
		})
	}
}

// TestEarlierTablesAreNamed: programs that don't make the tables say what is wrong with them.
func TestEarlierTablesAreNamed(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		s := newOldStore(t, kind)
		must(t, writeOld(t, s, newHistory("b", 1).incr("a", 1)))
		if _, err := s.Prove(t.Context(), "b"); !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), "rankcache ledger migrate") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestEarlierProgramsAreRefused: a ledger or controller of an earlier version would write raw scores as those that are shown.
func TestEarlierProgramsAreRefused(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 1)
		feed(t, s, 0, h.incr("there", 1))
		for _, member := range []string{"there", "new"} {
			if err := writeOld(t, s, h.incr(member, 1)); err == nil || !strings.Contains(err.Error(), "rank_score_both") {
				t.Errorf("an earlier ledger writes the score of a member that is %s: %v", member, err)
			}
		}
		_, err := s.db.ExecContext(t.Context(), "INSERT INTO rank_final (board, place, member, score, end_at) VALUES ('f', 1, 'm', 1.5, 2)")
		if err == nil || !strings.Contains(err.Error(), "raw") {
			t.Errorf("an earlier controller writes rank_final: %v", err)
		}
	})
}
