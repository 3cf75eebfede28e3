package ledger

import (
	"database/sql"

	"rankcache/wire"
)

// scoresLooked is how many scores with a fraction tell whether a class ranks ties.
const scoresLooked = 1000

// showScores gives rows of classes with integer scores the scores that were shown: before
// version 5 they had the raw ones alone. It may be repeated.
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
