package ledger

import (
	"database/sql"

	"rankcache/wire"
)

// settling decides, for changes that meet rows of the database, which of them are of a
// history that Redis has lost. A clash is a row with the same board, run and seq, or with
// the same board, member and order id, that tells of another change.
type settling struct {
	s    *Store
	t    *transaction
	now  int64 // Unix milliseconds
	done *Result
}

// clash is a change and the row that it can't stand beside.
type clash struct {
	update *wire.LedgerUpdate
	row    *wire.Update
}

// findings are what one look at the database gave.
type findings struct {
	rest    []*wire.LedgerUpdate // neither repeats nor lost
	lost    []*wire.Update
	clashes []clash
	tails   []tail // of runs that a later one has cut off
}

// tail is what a run has from a change on: all of it, or what Redis has not applied.
type tail struct {
	from *wire.Update
	all  bool
}

// settle returns the changes that can be written, and the runs of their boards after what
// it has moved. Each round moves rows or gives up changes, so it ends.
func (c *settling) settle(updates []*wire.LedgerUpdate, runs runsOf) ([]*wire.LedgerUpdate, runsOf, error) {
	for {
		found, err := c.look(updates, runs)
		if err != nil {
			return nil, nil, err
		}
		rows, err := c.decide(found)
		if err != nil {
			return nil, nil, err
		}
		if err := c.keepLost(found.lost); err != nil {
			return nil, nil, err
		}
		if len(rows) == 0 && len(found.clashes) == 0 && len(found.tails) == 0 {
			return found.rest, runs, c.s.at("settled")
		}
		if err := c.move(rows, runs); err != nil {
			return nil, nil, err
		}
		for _, tail := range found.tails {
			if err := c.moveTail(tail, runs); err != nil {
				return nil, nil, err
			}
		}
		if updates = found.rest; len(updates) > 0 {
			if runs, err = c.t.boardRuns(bare(updates)); err != nil {
				return nil, nil, err
			}
		}
	}
}

// look compares the changes with the rows that are there.
func (c *settling) look(updates []*wire.LedgerUpdate, runs runsOf) (*findings, error) {
	keys, orders, err := c.rows(bare(updates))
	if err != nil {
		return nil, err
	}
	found := &findings{}
	cut := make(map[logKey]bool)
	for _, u := range updates {
		row, other := keys[logKey{u.Board, u.Run, u.Seq}], orders[orderOf(&u.Update)]
		h := runs.highest(u.Board)
		switch {
		case row != nil && same(row, &u.Update):
			c.done.Repeats++
			continue
		case h != nil && u.Run < h.run && u.Seq >= h.begin:
			found.lost = append(found.lost, &u.Update)
			continue
		case row != nil:
			found.clashes = append(found.clashes, clash{u, row})
		case other != nil:
			found.clashes = append(found.clashes, clash{u, other})
		}
		if h != nil && h.run < u.Run && u.Seq > 1 {
			for _, r := range runs[u.Board] {
				if k := (logKey{u.Board, r.run, 0}); r.last.Seq >= u.Seq && !cut[k] {
					cut[k] = true
					found.tails = append(found.tails, tail{&wire.Update{Board: u.Board, Run: r.run, Seq: u.Seq}, true})
				}
			}
		}
		found.rest = append(found.rest, u)
	}
	return found, nil
}

// rows returns the rows with the keys, and with the order ids, of the changes.
func (c *settling) rows(updates []*wire.Update) (map[logKey]*wire.Update, map[orderKey]*wire.Update, error) {
	keys, orders := make(map[logKey]*wire.Update), make(map[orderKey]*wire.Update)
	if len(updates) == 0 {
		return keys, orders, nil
	}
	read := func(row *sql.Rows) error {
		u, err := scanUpdate(row)
		if err == nil {
			keys[logKey{u.Board, u.Run, u.Seq}] = u
		}
		if err == nil && u.OrderID != "" {
			orders[orderOf(u)] = u
		}
		return err
	}
	err := c.t.d.query("SELECT ", logColumns, " FROM rank_log WHERE ").among(keyColumns(updates)...).each(c.t, read)
	if err != nil {
		return nil, nil, err
	}
	if cols := orderColumns(updates); cols[0].len() > 0 {
		err = c.t.d.query("SELECT ", logColumns, " FROM rank_log WHERE ").among(cols...).each(c.t, read)
	}
	return keys, orders, err
}

// decide returns the rows that are lost. Changes that are lost go from rest to lost. What
// Redis does not know of any more is decided by arrival: the later one stands, unless it
// is of an earlier place in the history.
func (c *settling) decide(found *findings) (rows []*wire.Update, err error) {
	both := make([]*wire.Update, 0, 2*len(found.clashes))
	for _, cl := range found.clashes {
		both = append(both, &cl.update.Update, cl.row)
	}
	verdicts, err := verdicts(c.t.ctx, c.s.Orders, both)
	if err != nil {
		return nil, err
	}
	gone := make(map[*wire.LedgerUpdate]bool)
	clashes := found.clashes
	found.clashes = nil
	for i, cl := range clashes {
		mine, its := verdicts[2*i], verdicts[2*i+1]
		switch {
		case its == Held || mine == Lost && its != Lost || mine == its && later(cl.row, &cl.update.Update):
			gone[cl.update] = true
			found.lost = append(found.lost, &cl.update.Update)
		case cl.row.Run == cl.update.Run && cl.row.Seq == cl.update.Seq:
			found.tails = append(found.tails, tail{cl.row, false})
		default:
			rows = append(rows, cl.row)
		}
	}
	rest := found.rest[:0:0]
	for _, u := range found.rest {
		if !gone[u] {
			rest = append(rest, u)
		}
	}
	found.rest = rest
	return rows, nil
}
