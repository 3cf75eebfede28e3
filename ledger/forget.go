package ledger

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"math"
	"slices"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/tick"
	"rankcache/wire"
)

// A member that is forgotten has a row in rank_forget until the board's rows have a pseudonym in its place, one for each
// forgetting. Scores and places stay. It is not done at once: as long as an order of the member may come again, its id
// tells that it is a repeat, in a rewind, in a board that is rebuilt, and to reconcile.

const (
	forgetEvery = 10 * time.Minute // the time between two looks at rank_forget
	// forgetAfter is how long rows keep an id at least. Redis knows an order for two order lives, of two minutes more each.
	forgetAfter, lifeMore = looksFor, 2 * time.Minute
)

// forgetting is a row of rank_forget: a board's changes of a member up to one are to be forgotten, since a time.
type forgetting struct {
	memberKey
	run, seq, at int64
}

type forgettings struct{ *database }

// its adds that a row is of the member.
func (f *forgetting) its(q *query) *query {
	return q.add(" WHERE board = ").arg(string(f.board)).add(" AND member = ").arg(f.member)
}

func (f *forgetting) note(t *transaction) error {
	_, err := f.its(t.d.query("DELETE FROM rank_forget")).exec(t)
	if err == nil {
		_, err = t.d.query("INSERT INTO rank_forget (board, member, run, seq, at) VALUES (").arg(string(f.board)).add(", ").arg(f.member).
			add(", ").arg(f.run).add(", ").arg(f.seq).add(", ").arg(f.at).add(")").exec(t)
	}
	return err
}

// noteForgets notes those of changes that stand which forget a member.
func (c *settling) noteForgets(changes []*wire.Update) error {
	for _, u := range changes {
		f := forgetting{memberOf(u), int64(u.Run), int64(u.Seq), c.now} // #nosec G115 -- below 2^63
		if u.Op != wire.OpForget || wire.Forgotten(u.Member) {
			continue
		}
		if err := f.note(c.t); err != nil {
			return err
		}
	}
	return nil
}

// ForgetGone has a member forgotten, with its score, on a board that is closed, once Redis does not have that any more.
func (s forgettings) ForgetGone(ctx context.Context, board rankcache.BoardID, member string) error {
	f := forgetting{memberKey{board, member}, math.MaxInt64, math.MaxInt64, time.Now().UnixMilli()}
	return s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		noted := f // its time is 0 if it is there
		err := f.its(t.d.query("SELECT run, seq FROM rank_score")).each(t, func(row *sql.Rows) error { return row.Scan(&f.run, &f.seq) })
		if err == nil {
			err = f.its(t.d.query("SELECT run, seq, 0 FROM rank_forget")).each(t, func(row *sql.Rows) error { return row.Scan(&noted.run, &noted.seq, &noted.at) })
		}
		if err != nil || noted.at == 0 && noted.run == f.run && noted.seq == f.seq {
			return err
		}
		return f.note(t)
	})
}

// BoardsOf returns the boards of which there are rows of a member, and finals of which nothing else is left.
func (s forgettings) BoardsOf(ctx context.Context, member string) (boards []rankcache.BoardID, err error) {
	err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		q := t.d.query("SELECT board FROM rank_score WHERE member = ").arg(member).add(" UNION SELECT board FROM rank_lost WHERE member = ").arg(member).
			add(" UNION SELECT board FROM rank_final WHERE member = ").arg(member).add(" ORDER BY board DESC") // shards before the whole board
		return q.each(t, func(row *sql.Rows) error {
			var b rankcache.BoardID
			err := row.Scan((*string)(&b))
			if !slices.ContainsFunc(boards, func(shard rankcache.BoardID) bool { whole, _, _ := class.CutShard(shard); return whole == b }) {
				boards = append(boards, b)
			}
			return err
		})
	})
	slices.Sort(boards)
	return boards, err
}

// forgetInTurn forgets what is due, until ctx ends, while this ledger leads: as soon as it does, and each ten minutes.
func (l *Ledger) forgetInTurn(ctx context.Context, leads func() bool) {
	last := time.Time{}
	for range tick.Every(ctx, logEvery) {
		if !leads() || time.Since(last) < forgetEvery {
			continue
		}
		last = time.Now()
		n, err := l.opts.Store.forgetDue(ctx, time.Now(), l.opts.Redis)
		if n > 0 {
			l.log.Info("members that were forgotten have a pseudonym in the books now", "boards", n)
		}
		if err != nil && ctx.Err() == nil {
			l.log.Warn("members that are to be forgotten are in the books yet, the next attempt is in ten minutes", "err", err)
		}
	}
}

// forgetDue forgets what has been in rank_forget for long enough. One that can't be done holds no other up.
func (s forgettings) forgetDue(ctx context.Context, now time.Time, asked Redis) (n int, err error) {
	var due []*forgetting
	err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		return t.d.query("SELECT board, member, run, seq, at FROM rank_forget WHERE at <= ").arg(now.Add(-forgetAfter).UnixMilli()).each(t, func(row *sql.Rows) error {
			var f forgetting
			due = append(due, &f)
			return row.Scan((*string)(&f.board), &f.member, &f.run, &f.seq, &f.at)
		})
	})
	for _, f := range due {
		meta, found, e := asked.Meta(ctx, f.board)
		if life := time.Duration(meta.OrderLife) * time.Second; e == nil && now.Sub(time.UnixMilli(f.at)) >= 2*(life+lifeMore) {
			e = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
				done, err := f.forget(t, !found)
				if done {
					n++
				}
				return err
			})
		}
		err = errors.Join(err, e)
	}
	return n, err
}

// forget gives the rows a pseudonym, unless the member has a score yet on a board that Redis has: it is closed, or the
// change that forgot the member does not stand, and may come again.
func (f *forgetting) forget(t *transaction, gone bool) (done bool, err error) {
	runs, err := t.boardRuns([]rankcache.BoardID{f.board})
	if err != nil {
		return false, err
	}
	there, last, raw := false, wire.Update{}, sql.NullFloat64{} // the row of rank_score
	err = f.its(t.d.query("SELECT 1 FROM rank_forget")).add(" AND run = ").arg(f.run).add(" AND seq = ").arg(f.seq).add(" FOR UPDATE").
		each(t, func(*sql.Rows) error { there = true; return nil })
	if err == nil {
		err = f.its(t.d.query("SELECT run, seq, raw, COALESCE(data, '') FROM rank_score")).each(t, func(row *sql.Rows) error { return row.Scan(&last.Run, &last.Seq, &raw, &last.Data) })
	}
	upto := wire.Update{Run: uint64(f.run), Seq: uint64(f.seq)} // #nosec G115 -- stored from uint64
	back := later(&last, &upto)
	if err != nil || !there || raw.Valid && !back && !gone {
		return false, err
	}
	p := &pseudonym{forgetting: f, name: wire.ForgottenPrefix + rand.Text()[:16], upto: upto, back: back, scored: raw.Valid && !back}
	if !back {
		p.upto = last
	}
	if p.scored {
		p.share = wire.Hash(p.name, raw.Float64) - wire.Hash(rankcache.JoinData(f.member, last.Data), raw.Float64)
	}
	if err := p.inLog(t, runs.cutOff(f.board)); err != nil {
		return false, err
	}
	if err := p.inScores(t); err != nil {
		return false, err
	}
	if p.scored || !back && len(runs[f.board]) == 0 {
		err = p.inFinal(t)
	}
	return err == nil, err
}
