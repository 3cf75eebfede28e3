package ledger

import (
	"rankcache"
	"rankcache/class"
	"rankcache/wire"
)

// pseudonym takes the place of a member in the rows of a board.
type pseudonym struct {
	memberKey
	name   string
	upto   wire.Update // the last change to forget
	back   bool        // somebody new has the id: later rows stay
	scored bool        // the member has a score, which stays
	share  uint64      // by which the checksum of all members becomes another one
}

// until adds that a row is of a change before the last one to forget, or of that.
func (p *pseudonym) until(q *query, compared string) *query {
	run := int64(p.upto.Run) // #nosec G115 -- read from int64, as is seq
	return q.add(" AND (run < ").arg(run).add(" OR run = ").arg(run).add(" AND seq ", compared).arg(int64(p.upto.Seq)).add(")")
}

// inLog replaces the member in the log. Checksums before and after a change give its share, by which ids can be tried:
// those of the time in which it was on the board go, and no change of then is proved by the one before it any more.
func (p *pseudonym) inLog(t *transaction, cutOff bool) error {
	sums := t.d.query("UPDATE rank_log SET sum = NULL WHERE board = ").arg(string(p.board))
	if !cutOff { // else it may have been there before the first row
		p.its(sums.add(" AND seq >= (SELECT least_seq FROM (SELECT MIN(seq) AS least_seq FROM rank_log")).add(") AS x)") // MySQL does not merge it with the update
	}
	if !p.scored {
		p.until(sums, "< ")
	}
	all := []*query{sums, t.d.query("UPDATE rank_lost SET sum = NULL WHERE board = ").arg(string(p.board))}
	for _, table := range []string{"rank_log", "rank_lost"} {
		q := p.its(t.d.query("UPDATE ", table, " SET member = ").arg(p.name).add(", order_id = NULL, by_groups = NULL, data = NULL, given = NULL"))
		if all = append(all, q); p.back {
			p.until(q, "<= ")
		}
	}
	return t.execAll(all...)
}

// add adds the change of the checksum of all members.
func (p *pseudonym) add(q *query) *query {
	return q.add(" SET sum = (sum + ").arg(int64(p.share & wire.SumMask)).add(") & ").arg(int64(wire.SumMask))
}

// inScores has the board add up to a checksum with the pseudonym.
func (p *pseudonym) inScores(t *transaction) error {
	run := int64(p.upto.Run) // #nosec G115 -- read from int64
	all := []*query{p.its(t.d.query("DELETE FROM rank_forget")), t.d.query("UPDATE rank_board SET sum = NULL WHERE board = ").arg(string(p.board)).add(" AND run < ").arg(run)}
	if p.scored {
		all = append(all, p.its(t.d.query("UPDATE rank_score SET data = NULL, member = ").arg(p.name)))
		n, err := p.add(t.d.query("UPDATE rank_board")).add(" WHERE board = ").arg(string(p.board)).add(" AND run >= ").arg(run).add(" AND base_run <= ").arg(run).exec(t)
		if err != nil {
			return err
		}
		if n == 0 { // it was a member of an earlier life alone
			p.share = 0
		}
	} else if !p.back {
		all = append(all, p.its(t.d.query("DELETE FROM rank_score")))
	}
	return t.execAll(all...)
}

// inFinal changes the final of the board, or of all shards with it. The place stays; with the checksum its state is another.
func (p *pseudonym) inFinal(t *transaction) error {
	whole, _, _ := class.CutShard(p.board)
	of := func(q *query) *query {
		return q.add(" WHERE board IN (").arg(string(p.board)).add(", ").arg(string(whole)).add(")")
	}
	err := t.entries(of(t.d.query("SELECT member, raw, data FROM rank_final")).add(" AND member = ").arg(p.member), func(e rankcache.Entry) error {
		p.share = wire.Hash(p.name, e.Score) - wire.Hash(e.Member, e.Score)
		return nil
	})
	if err != nil {
		return err
	}
	return t.execAll(of(t.d.query("UPDATE rank_final SET data = NULL, member = ").arg(p.name)).add(" AND member = ").arg(p.member), of(p.add(t.d.query("UPDATE rank_final_board"))))
}
