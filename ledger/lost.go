package ledger

import (
	"database/sql"
	"math"

	"rankcache/wire"
)

// tailPage is how many rows of a lost history are moved at a time, which bounds memory.
const tailPage = 5000

// keepLost writes changes of a lost history that never were in rank_log.
func (c *settling) keepLost(lost []*wire.Update) error {
	if len(lost) == 0 {
		return nil
	}
	there := make(map[logKey]*wire.Update)
	err := c.t.d.query("SELECT ", logColumns, " FROM rank_lost WHERE ").among(keyColumns(lost)...).each(c.t, func(row *sql.Rows) error {
		u, err := scanUpdate(row)
		if err == nil {
			there[logKey{u.Board, u.Run, u.Seq}] = u
		}
		return err
	})
	if err != nil {
		return err
	}
	var fresh []*wire.Update
	for _, u := range lost {
		if before := there[logKey{u.Board, u.Run, u.Seq}]; before != nil && same(before, u) {
			c.done.Repeats++
			continue
		}
		fresh = append(fresh, u)
	}
	if len(fresh) == 0 {
		return nil
	}
	at := make([]int64, len(fresh))
	for i := range at {
		at[i] = c.now
	}
	c.done.Lost += len(fresh)
	_, err = c.t.d.insert("rank_lost", "", append(updateColumns(fresh), ints("lost_at", at))...).exec(c.t)
	return err
}

// moveTail moves what a run has from a change on, but for what Redis has applied.
func (c *settling) moveTail(from tail, runs runsOf) error {
	u := from.from
	for below := int64(math.MaxInt64); ; {
		var page, lost []*wire.Update
		err := c.t.d.query("SELECT ", logColumns, " FROM rank_log WHERE board = ").arg(string(u.Board)).add(" AND run = ").arg(int64(u.Run)).
			add(" AND seq >= ").arg(int64(u.Seq)).add(" AND seq < ").arg(below).add(" ORDER BY seq DESC LIMIT ").arg(tailPage).
			each(c.t, func(row *sql.Rows) error {
				u, err := scanUpdate(row)
				page = append(page, u)
				return err
			})
		if err != nil || len(page) == 0 {
			return err
		}
		if lost, err = c.notHeld(page, from.all); err != nil {
			return err
		}
		if err := c.move(lost, runs); err != nil {
			return err
		}
		below = int64(page[len(page)-1].Seq)
	}
}

// notHeld returns the rows that Redis has not applied, or all.
func (c *settling) notHeld(rows []*wire.Update, all bool) (lost []*wire.Update, err error) {
	if all {
		return rows, nil
	}
	verdicts, err := verdicts(c.t.ctx, c.s.Orders, rows)
	if err != nil {
		return nil, err
	}
	for i, v := range verdicts {
		if v != Held {
			lost = append(lost, rows[i])
		}
	}
	return lost, nil
}

// move moves rows to rank_lost, and sets their members and boards back to what remains.
func (c *settling) move(rows []*wire.Update, runs runsOf) error {
	if len(rows) == 0 {
		return nil
	}
	keys := keyColumns(rows)
	moved, err := c.t.d.query("INSERT INTO rank_lost (", logColumns, ", lost_at) SELECT ", logColumns, ", ").arg(c.now).add(c.t.d.asInt(), " FROM rank_log WHERE ").
		among(keys...).exec(c.t)
	if err != nil {
		return err
	}
	c.done.Lost += int(moved)
	if _, err := c.t.d.query("DELETE FROM rank_log WHERE ").among(keys...).exec(c.t); err != nil {
		return err
	}
	if err := c.resetScores(rows, runs); err != nil {
		return err
	}
	if err := c.resetBoards(rows, runs); err != nil {
		return err
	}
	return c.s.at("moved")
}

// resetScores sets the members of moved rows to their latest remaining row. If retention
// may have removed that, their board is incomplete.
func (c *settling) resetScores(rows []*wire.Update, runs runsOf) error {
	members := memberColumns(rows)
	var remain []*wire.Update
	err := c.t.d.query("SELECT ", logColumns, " FROM (SELECT ", logColumns,
		", ROW_NUMBER() OVER (PARTITION BY board, member ORDER BY run DESC, seq DESC) AS newest FROM rank_log WHERE ").among(members...).
		add(") AS l WHERE newest = 1").each(c.t, func(row *sql.Rows) error {
		u, err := scanUpdate(row)
		remain = append(remain, u)
		return err
	})
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
	has := make(map[memberKey]bool)
	for _, u := range remain {
		has[memberOf(u)] = true
	}
	for _, u := range rows {
		if h := runs.highest(u.Board); h != nil && !has[memberOf(u)] && runs.cut(u) {
			if _, err := c.t.d.query("UPDATE rank_board SET incomplete = 1 WHERE board = ").arg(string(u.Board)).exec(c.t); err != nil {
				return err
			}
		}
	}
	return nil
}

// cut reports whether rows of the change's board are missing before those that are there.
func (r runsOf) cut(u *wire.Update) bool {
	h := r.highest(u.Board)
	for _, run := range r[u.Board] {
		if run.run >= h.base && run.first > run.begin || run.run == h.base && run.begin > 1 {
			return true
		}
	}
	return false
}

// resetBoards sets the runs of moved rows to their highest remaining row.
func (c *settling) resetBoards(rows []*wire.Update, runs runsOf) error {
	var changed []*boardRun
	seen := make(map[logKey]bool)
	for _, u := range rows {
		key := logKey{u.Board, u.Run, 0}
		r := runs.find(u.Board, u.Run)
		if r == nil || seen[key] {
			continue
		}
		seen[key] = true
		r.last = &wire.Update{Board: u.Board, Run: u.Run, Seq: r.begin - 1, At: r.last.At}
		err := c.t.d.query("SELECT ", logColumns, " FROM rank_log WHERE board = ").arg(string(u.Board)).add(" AND run = ").arg(int64(u.Run)).
			add(" ORDER BY seq DESC LIMIT 1").each(c.t, func(row *sql.Rows) (err error) {
			r.last, err = scanUpdate(row)
			return err
		})
		if err != nil {
			return err
		}
		changed = append(changed, r)
	}
	return c.t.saveRuns(changed)
}
