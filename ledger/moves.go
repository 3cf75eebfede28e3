package ledger

import (
	"slices"

	"rankcache"
	"rankcache/wire"
)

// settling writes changes that may meet others. A board has one history: its head, the run that
// this one continues up to where it began, and so on. rank_log has that history, rank_lost the rest.
type settling struct {
	s     *database
	t     *transaction
	runs  runsOf // of the changes' boards
	named masters
	parts map[rankcache.BoardID]int32 // of the changes' boards
	now   int64                       // Unix milliseconds
	done  *Result
}

const (
	// movedAtOnce is how many rows are moved at a time, which bounds memory, and cutsAtOnce of how many runs.
	movedAtOnce, cutsAtOnce = 5000, 100
)

// repartition moves the rows of runs of which others stand than before.
func (c *settling) repartition(cuts []cut) error {
	var out, back []cut
	for _, one := range cuts {
		if one.is < one.was {
			out = append(out, cut{one.boardRun, one.is, one.was})
		} else {
			back = append(back, one)
		}
	}
	if err := c.each(out, "rank_log x", "", c.moveOut); err != nil {
		return err
	}
	return c.each(back, "rank_lost x", " AND NOT EXISTS (SELECT 1 FROM rank_log l WHERE "+sameOrder+")", c.moveBack)
}

// sameOrder joins rows of rank_log as l and of rank_lost as x that are of one order.
const sameOrder = "l.board = x.board AND l.member = x.member AND l.order_id = x.order_id AND l.op = x.op"

// each calls move with the rows that a table x has from was up to is, until there are none: move takes them out of it.
func (c *settling) each(cuts []cut, table, more string, move func([]*wire.Update) error) error {
	for part := range slices.Chunk(cuts, cutsAtOnce) {
		for {
			q := c.t.d.query("SELECT ", logColumns, " FROM ", table, " WHERE (1 = 0")
			for _, of := range part {
				q.add(" OR board = ").arg(string(of.last.Board)).add(" AND run = ").arg(int64(of.run)).
					add(" AND seq >= ").arg(int64(of.was)).add(" AND seq < ").arg(int64(of.is))
			}
			var rows []*wire.Update
			err := q.add(")", more, " LIMIT ").arg(movedAtOnce).each(c.t, updatesTo(func(u *wire.Update) error { rows = append(rows, u); return nil }))
			if err == nil && len(rows) > 0 {
				err = move(rows)
			}
			if err != nil {
				return err
			}
			if len(rows) < movedAtOnce {
				break
			}
		}
	}
	return nil
}

// moveOut moves rows of rank_log to rank_lost, and sets their members back to what remains.
func (c *settling) moveOut(rows []*wire.Update) error {
	if len(rows) == 0 {
		return nil
	}
	if err := c.setAside(rows); err != nil {
		return err
	}
	if _, err := c.t.d.query("DELETE FROM rank_log WHERE ").among(keyColumns(rows)...).exec(c.t); err != nil {
		return err
	}
	if err := c.resetScores(rows); err != nil {
		return err
	}
	return c.s.at("moved")
}

// moveBack moves rows of rank_lost to rank_log: what they are part of stands again.
func (c *settling) moveBack(rows []*wire.Update) error {
	if _, err := c.t.d.query("DELETE FROM rank_lost WHERE ").among(keyColumns(rows)...).exec(c.t); err != nil {
		return err
	}
	n, err := c.t.d.insert("rank_log", c.t.d.ignore, updateColumns(rows)...).exec(c.t)
	if err != nil {
		return err
	}
	c.done.Rows += int(n)
	if err := noteForgets(c.t, rows, c.now); err != nil {
		return err
	}
	return c.resetScores(rows)
}

func (c *settling) setAside(changes []*wire.Update) error {
	if len(changes) == 0 {
		return nil
	}
	there := make(map[logKey]*wire.Update)
	err := c.t.d.query("SELECT ", logColumns, " FROM rank_lost WHERE ").among(keyColumns(changes)...).
		each(c.t, updatesTo(func(u *wire.Update) error { there[logKey{u.Board, u.Run, u.Seq}] = u; return nil }))
	if err != nil {
		return err
	}
	var fresh []*wire.Update
	var state, at []int64
	for _, u := range changes {
		if before := there[logKey{u.Board, u.Run, u.Seq}]; before != nil && repeats(before, u) {
			c.done.Repeats++
			continue
		}
		fresh, at, state = append(fresh, u), append(at, c.now), append(state, lostAside)
		if u.Op == wire.OpTrim {
			state[len(state)-1] = lostAgain
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	c.done.Aside += len(fresh)
	_, err = c.t.d.insert("rank_lost", "", append(updateColumns(fresh), ints("state", state), ints("lost_at", at))...).exec(c.t)
	return err
}

// resetScores sets members to their latest row that stands. If retention took that, the board is incomplete.
func (c *settling) resetScores(rows []*wire.Update) error {
	members := memberColumns(rows)
	var remain []*wire.Update
	has := make(map[memberKey]bool)
	err := c.t.d.query("SELECT ", logColumns, " FROM (SELECT ", logColumns,
		", ROW_NUMBER() OVER (PARTITION BY board, member ORDER BY run DESC, seq DESC) AS newest FROM rank_log WHERE ").among(members...).
		add(") AS l WHERE newest = 1").each(c.t, updatesTo(func(u *wire.Update) error {
		if has[memberOf(u)] = true; !wire.Forgotten(u.Member) { // of one that is, whoever has its id goes on
			remain = append(remain, u)
		}
		return nil
	}))
	if err != nil {
		return err
	}
	if _, err := c.t.d.query("DELETE FROM rank_score WHERE ").among(members...).exec(c.t); err != nil {
		return err
	}
	if len(remain) > 0 {
		if _, err := c.t.d.insert("rank_score", c.t.d.newer, scoreColumns(remain)...).exec(c.t); err != nil {
			return err
		}
	}
	for _, u := range rows {
		if has[memberOf(u)] || !c.runs.cutOff(u.Board) {
			continue
		}
		if _, err := c.t.d.query("UPDATE rank_board SET incomplete = 1 WHERE board = ").arg(string(u.Board)).exec(c.t); err != nil {
			return err
		}
	}
	return nil
}
