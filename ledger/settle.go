package ledger

import (
	"slices"

	"rankcache/wire"
)

// settle makes the changes part of their runs, moves what no longer stands, and returns those to be written.
func (c *settling) settle(updates []*wire.LedgerUpdate) (stand []*wire.LedgerUpdate, err error) {
	for _, u := range updates {
		if h := c.runs.head(u.Board, c.named); u.Seq == 1 && h != nil && h.run < u.Run {
			c.done.Reborn++
		}
		c.runs.add(u)
		c.runs.forget(u)
	}
	c.runs.at(c.parts)
	all := bare(updates)
	if err := c.resolve(all); err != nil {
		return nil, err
	}
	var cuts []cut
	for _, board := range boardsOf(all) {
		cuts = append(cuts, c.runs.relate(board, c.named)...)
	}
	if err := c.repartition(cuts); err != nil {
		return nil, err
	}
	return c.among(updates)
}

// among compares changes with the rows that stand, and returns those that are to be written.
func (c *settling) among(updates []*wire.LedgerUpdate) (stand []*wire.LedgerUpdate, err error) {
	keys, orders, err := c.rows(bare(updates))
	if err != nil {
		return nil, err
	}
	var late, replaced []*wire.Update
	for _, u := range updates {
		row, other := keys[logKey{u.Board, u.Run, u.Seq}], orders[orderOf(&u.Update)]
		switch {
		case row != nil && repeats(row, &u.Update):
			if of := c.runs.find(u.Board, u.Run); !row.HasSum && of.read != nil && of.last == &u.Update { // its sum was of a member that is forgotten
				of.last = of.read
			}
			c.done.Repeats++
			continue
		case u.Seq >= c.runs.find(u.Board, u.Run).end, other != nil && later(other, &u.Update):
			late = append(late, &u.Update)
			continue
		case other != nil: // an order id that was used again, after its order life
			replaced = append(replaced, other)
		}
		if row != nil && row != other { // of writers that don't give each history a run: the later one may be right
			replaced = append(replaced, row)
		}
		stand = append(stand, u)
	}
	if err := c.setAside(late); err != nil {
		return nil, err
	}
	return stand, c.moveOut(replaced)
}

// place is where a run may continue another one: the row before its first change.
type place struct {
	of    *boardRun
	among []*wire.Update // of several runs, the latest last
}

// resolve finds out which runs those of the changes, and the latest ones, continue, as far as that is unknown.
func (c *settling) resolve(updates []*wire.Update) error {
	wanted := make(map[logKey][]*place)
	var keys []*wire.Update
	for _, board := range boardsOf(updates) {
		for _, of := range c.runs[board] {
			if of.after != 0 || of.begin == 1 || !of.changed && of != c.runs.head(board, c.named) {
				continue
			}
			p := &place{of: of}
			for _, b := range c.runs[board] {
				if b.run < of.run {
					k := logKey{board, b.run, of.begin - 1}
					wanted[k], keys = append(wanted[k], p), append(keys, &wire.Update{Board: board, Run: k.run, Seq: k.seq})
				}
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	places := make(map[*place]bool)
	seen := make(map[logKey]bool)
	found := func(u *wire.Update) error {
		k := logKey{u.Board, u.Run, u.Seq}
		if seen[k] {
			return nil
		}
		seen[k] = true
		for _, p := range wanted[k] {
			p.among, places[p] = append(p.among, u), true
		}
		return nil
	}
	for _, u := range updates {
		_ = found(u)
	}
	for _, table := range []string{"rank_log", "rank_lost"} {
		if err := c.t.d.query("SELECT ", logColumns, " FROM ", table, " WHERE ").among(keyColumns(keys)...).each(c.t, updatesTo(found)); err != nil {
			return err
		}
	}
	for p := range places {
		if err := c.choose(p, updates); err != nil {
			return err
		}
	}
	return nil
}

// choose decides which run is continued. Of several it is the latest whose checksum the first change goes on with.
func (c *settling) choose(p *place, updates []*wire.Update) error {
	slices.SortFunc(p.among, func(a, b *wire.Update) int { return int(a.Run) - int(b.Run) })
	last := p.among[len(p.among)-1]
	p.of.after, p.of.changed = last.Run, true
	if len(p.among) == 1 {
		return nil
	}
	first, err := c.first(p.of, updates)
	if err != nil || first == nil {
		return err
	}
	before := slices.Clone(updates)
	for _, table := range []string{"rank_log", "rank_lost"} {
		err := c.t.d.query("SELECT ", logColumns, " FROM ", table, " WHERE board = ").arg(string(first.Board)).add(" AND member = ").arg(first.Member).
			add(" AND seq < ").arg(int64(first.Seq)).each(c.t, updatesTo(func(u *wire.Update) error { before = append(before, u); return nil }))
		if err != nil {
			return err
		}
	}
	for _, at := range slices.Backward(p.among) {
		if c.runs.continues(first, at, before) {
			p.of.after = at.Run
			return nil
		}
	}
	// Checksums of before a member was forgotten are gone: what was found with them stands.
	if slices.ContainsFunc(p.among, func(u *wire.Update) bool { return u.Run == p.of.was }) && slices.ContainsFunc(p.among, func(u *wire.Update) bool { return !u.HasSum }) {
		p.of.after = p.of.was
	}
	return nil
}

// first returns the first change of a run, nil if it is not there.
func (c *settling) first(of *boardRun, updates []*wire.Update) (first *wire.Update, err error) {
	key := wire.Update{Board: of.last.Board, Run: of.run, Seq: of.begin}
	for _, u := range updates {
		if u.Board == key.Board && u.Run == key.Run && u.Seq == key.Seq {
			return u, nil
		}
	}
	for _, table := range []string{"rank_log", "rank_lost"} {
		err := c.t.d.query("SELECT ", logColumns, " FROM ", table, " WHERE ").among(keyColumns([]*wire.Update{&key})...).
			each(c.t, updatesTo(func(u *wire.Update) error { first = u; return nil }))
		if err != nil {
			return nil, err
		}
	}
	return first, nil
}

// rows returns the rows of rank_log with the keys, and with the order ids, of the changes.
func (c *settling) rows(updates []*wire.Update) (map[logKey]*wire.Update, map[orderKey]*wire.Update, error) {
	keys, orders := make(map[logKey]*wire.Update), make(map[orderKey]*wire.Update)
	read := updatesTo(func(u *wire.Update) error {
		keys[logKey{u.Board, u.Run, u.Seq}] = u
		if u.OrderID != "" {
			orders[orderOf(u)] = u
		}
		return nil
	})
	if len(updates) == 0 {
		return keys, orders, nil
	}
	err := c.t.d.query("SELECT ", logColumns, " FROM rank_log WHERE ").among(keyColumns(updates)...).each(c.t, read)
	if cols := orderColumns(updates); err == nil && cols[0].n > 0 {
		err = c.t.d.query("SELECT ", logColumns, " FROM rank_log WHERE ").among(cols...).each(c.t, read)
	}
	return keys, orders, err
}
