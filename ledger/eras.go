package ledger

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"rankcache"
)

// servers returns which servers were named last in the partitions of a batch, and notes what it names. In others
// are those in which they are others than before.
func (t *transaction) servers(b *Batch) (named masters, others []int32, err error) {
	named = make(masters)
	var parts []int64
	for p := range b.ends {
		parts = append(parts, int64(p))
	}
	err = t.d.query("SELECT part, eras FROM rank_offset WHERE topic = ").arg(b.Topic).add(" AND ").among(ints("part", parts)).
		each(t, func(row *sql.Rows) error {
			var part int32
			var eras string
			err := row.Scan(&part, &eras)
			named[part] = eras
			return err
		})
	for part, eras := range b.eras {
		if err != nil || named[part] == eras {
			continue
		}
		named[part], others = eras, append(others, part)
		_, err = t.d.query("UPDATE rank_offset SET eras = ").arg(eras).add(" WHERE topic = ").arg(b.Topic).add(" AND part = ").arg(part).exec(t)
	}
	return named, others, err
}

// turn has the boards of a partition led by the servers that are named in it from now on.
func (c *settling) turn(part int32) error {
	for after, more := rankcache.BoardID(""), true; more; {
		boards, err := c.led(part, after)
		if err != nil || len(boards) == 0 {
			return err
		}
		if c.runs, err = c.t.boardRuns(boards); err != nil {
			return err
		}
		if err := c.lead(boards...); err != nil {
			return err
		}
		after, more = boards[len(boards)-1], len(boards) == turnsAtOnce
	}
	return nil
}

// Locate notes on which server Redis has a board's run, as writers do with each change, and has what led to that run stand
// if the server was named last: of a board to which nobody writes nobody else tells. Of one that goes on in a run without
// a change it is the run that has its state.
func (s *Store) Locate(ctx context.Context, board rankcache.BoardID, asked Redis) error {
	redis, era, err := asked.Home(ctx, board)
	if err != nil || redis.Run == 0 {
		return err
	}
	return s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		c := settling{s: s.database, t: t, named: make(masters), now: time.Now().UnixMilli(), done: &Result{}}
		run, part, may := uint64(0), int32(0), false
		q := t.d.query("SELECT run, part, ", mayLead, " FROM rank_board b WHERE board = ").arg(string(board)).add(" AND (run = ").arg(int64(redis.Run)).
			add(" OR run < ").arg(int64(redis.Run)).add(" AND seq = ").arg(int64(redis.Seq)).add(" AND sum = ").arg(int64(redis.Sum)).add(") ORDER BY run DESC LIMIT 1") // #nosec G115 -- an overflow is none
		if err := q.each(t, func(row *sql.Rows) error { return row.Scan(&run, &part, &may) }); err != nil || !may {
			return err
		}
		// A partition that is not known, of tables of before version 12, may be any. What is named in it stays so until the end.
		q = t.d.query("SELECT eras FROM rank_offset WHERE eras LIKE ").arg("%" + era + "%").add(" AND (part = ").arg(part).add(" OR ").arg(part).add(" = -1) ORDER BY part LIMIT 1 FOR UPDATE")
		err := q.each(t, func(row *sql.Rows) error {
			var eras string
			err := row.Scan(&eras)
			c.named[part] = eras
			return err
		})
		if err != nil || len(c.named) == 0 {
			return err
		}
		if c.runs, err = t.boardRuns([]rankcache.BoardID{board}); err != nil {
			return err
		}
		if of := c.runs.find(board, run); of != nil && of.part == part {
			of.found(era)
			return c.lead(board)
		}
		return nil
	})
}

// lead has boards be led by the servers that are named.
func (c *settling) lead(boards ...rankcache.BoardID) error {
	var cuts []cut
	for _, board := range boards {
		cuts = append(cuts, c.runs.relate(board, c.named)...)
	}
	if err := c.repartition(cuts); err != nil {
		return err
	}
	return c.t.save(c.runs)
}

// mayLead is the condition of rows b of rank_board of a run that does not lead.
const mayLead = "(end_seq = 0 OR EXISTS (SELECT 1 FROM rank_board h WHERE h.board = b.board AND h.run > b.run AND h.end_seq > 0))"

// turnsAtOnce is how many boards are turned at a time.
const turnsAtOnce = 500

// led returns the next boards of a partition that have a run of a server which is named in it, and may be led by
// another one.
func (c *settling) led(part int32, after rankcache.BoardID) (boards []rankcache.BoardID, err error) {
	q := c.t.d.query("SELECT DISTINCT board FROM rank_board b WHERE part = ").arg(part).add(" AND board > ").arg(string(after)).add(" AND (1 = 0")
	for _, era := range strings.Fields(c.named[part]) {
		q.add(" OR eras LIKE ").arg("%" + era + "%")
	}
	q.add(") AND ", mayLead, " ORDER BY board LIMIT ").arg(turnsAtOnce)
	err = q.each(c.t, func(row *sql.Rows) error {
		var board rankcache.BoardID
		err := row.Scan((*string)(&board))
		boards = append(boards, board)
		return err
	})
	return boards, err
}
