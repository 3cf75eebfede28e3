package ledger

import (
	"database/sql"
	"math"

	"rankcache"
	"rankcache/class"
	"rankcache/wire"
)

// pseudonym takes the place of a member in the rows of a board.
type pseudonym struct {
	*forgetting
	name   string
	upto   wire.Update // the last change to forget
	back   bool        // somebody new has the id: later rows stay
	scored bool        // the member has a score, which stays
	share  uint64      // by which the checksum of all members becomes another one
}

// replace does so. Checksums before and after a change give the share of its member, by which ids can be tried: those of
// the time in which it was on the board go, and no change of then is proved by the one before it any more.
func (p *pseudonym) replace(t *transaction, runs runsOf) error {
	first := int64(math.MaxInt64)
	err := p.its(t.d.query("SELECT COALESCE(MIN(seq), ").arg(first).add(t.d.asInt(), ") FROM rank_log")).each(t, func(row *sql.Rows) error { return row.Scan(&first) })
	if err != nil {
		return err
	}
	if runs.cutOff(p.board) {
		first = 0
	}
	q := t.d.query("UPDATE rank_log SET sum = NULL WHERE board = ").arg(string(p.board)).add(" AND seq >= ").arg(first)
	if !p.scored {
		q = p.until(q, " AND seq < ")
	}
	all := []*query{q, t.d.query("UPDATE rank_lost SET sum = NULL WHERE board = ").arg(string(p.board))}
	for _, table := range []string{"rank_log", "rank_lost"} {
		q := p.its(t.d.query("UPDATE ", table, " SET member = ").arg(p.name).add(", order_id = NULL, by_groups = NULL, data = NULL, given = NULL"))
		if p.back {
			q = p.until(q, " AND seq <= ")
		}
		all = append(all, q)
	}
	all = append(all, p.scores(t, runs[p.board])...)
	if !p.back && (p.scored || len(runs[p.board]) == 0) {
		more, err := p.final(t)
		if err != nil {
			return err
		}
		all = append(all, more...)
	}
	for _, q := range all {
		if _, err := q.exec(t); err != nil {
			return err
		}
	}
	return nil
}

func (p *pseudonym) until(q *query, compared string) *query {
	run := int64(p.upto.Run) // #nosec G115 -- read from int64, as is seq
	return q.add(" AND (run < ").arg(run).add(" OR run = ").arg(run).add(compared).arg(int64(p.upto.Seq)).add(")")
}

// scores has the board add up to a checksum with the pseudonym.
func (p *pseudonym) scores(t *transaction, runs []*boardRun) (all []*query) {
	before := int64(p.upto.Run) // #nosec G115 -- read from int64
	if p.scored {
		all = append(all, p.its(t.d.query("UPDATE rank_score SET data = NULL, member = ").arg(p.name)))
		var head *boardRun
		for _, r := range runs {
			if r.end > 0 {
				head = r
			}
		}
		if head == nil || p.upto.Run < head.base { // of an earlier life
			p.share = 0
			return all
		}
		before = int64(head.run)
		if head.last.HasSum {
			all = append(all, t.d.query("UPDATE rank_board SET sum = ").arg(int64((head.last.Sum+p.share)&wire.SumMask)).add(" WHERE board = ").arg(string(p.board)).add(" AND run = ").arg(before))
		}
	} else if !p.back {
		all = append(all, p.its(t.d.query("DELETE FROM rank_score")))
	}
	return append(all, t.d.query("UPDATE rank_board SET sum = NULL WHERE board = ").arg(string(p.board)).add(" AND run < ").arg(before))
}

// final changes the final of the board, or of all shards with it. The place stays; with the checksum its state is another.
func (p *pseudonym) final(t *transaction) ([]*query, error) {
	whole, _, _ := class.CutShard(p.board)
	for _, board := range []rankcache.BoardID{p.board, whole} {
		found, err := finals(t, finalOf(t.d, board))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			continue
		}
		of := forgetting{memberKey: memberKey{board, p.member}}
		err = t.entries(of.its(t.d.query("SELECT member, raw, data FROM rank_final")), func(e rankcache.Entry) error {
			p.share = wire.Hash(p.name, e.Score) - wire.Hash(e.Member, e.Score)
			return nil
		})
		return []*query{of.its(t.d.query("UPDATE rank_final SET data = NULL, member = ").arg(p.name)),
			t.d.query("UPDATE rank_final_board SET sum = ").arg(int64((found[0].Sum + p.share) & wire.SumMask)).add(" WHERE board = ").arg(string(board))}, err
	}
	return nil, nil
}
