package ledger

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
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

// forgetting is a row of rank_forget: a board's changes of a member up to one are to be forgotten.
type forgetting struct {
	memberKey
	run, seq int64
	at       int64 // Unix milliseconds
}

type forgettings struct{ *database }

func (f *forgetting) its(q *query) *query {
	return q.add(" WHERE board = ").arg(string(f.board)).add(" AND member = ").arg(f.member)
}

// note notes that a change is one to forget.
func (f *forgetting) note(t *transaction) error {
	if _, err := f.its(t.d.query("DELETE FROM rank_forget")).exec(t); err != nil {
		return err
	}
	_, err := t.d.insert("rank_forget", "", texts("board", []string{string(f.board)}), texts("member", []string{f.member}), ints("run", []int64{f.run}), ints("seq", []int64{f.seq}), ints("at", []int64{f.at})).exec(t)
	return err
}

// noteForgets notes those of changes that stand which forget a member.
func (c *settling) noteForgets(changes []*wire.Update) error {
	for _, u := range changes {
		if u.Op != wire.OpForget || wire.Forgotten(u.Member) {
			continue
		}
		f := forgetting{memberOf(u), int64(u.Run), int64(u.Seq), c.now} // #nosec G115 -- below 2^63
		if err := f.note(c.t); err != nil {
			return err
		}
	}
	return nil
}

// ForgetGone has a member forgotten, with its score, on a board that is closed, once Redis does not have that any more.
func (s forgettings) ForgetGone(ctx context.Context, board rankcache.BoardID, member string) error {
	return s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		f := forgetting{memberKey{board, member}, math.MaxInt64, math.MaxInt64, time.Now().UnixMilli()}
		there := false
		err := f.its(t.d.query("SELECT 1 FROM rank_forget")).each(t, func(*sql.Rows) error { there = true; return nil })
		if err == nil && !there {
			if err = f.its(t.d.query("SELECT run, seq FROM rank_score")).each(t, func(row *sql.Rows) error { return row.Scan(&f.run, &f.seq) }); err == nil {
				err = f.note(t)
			}
		}
		return err
	})
}

// BoardsOf returns the boards of which there are rows of a member, and finals of which nothing else is left.
func (s forgettings) BoardsOf(ctx context.Context, member string) (boards []rankcache.BoardID, err error) {
	err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		for _, table := range []string{"rank_score", "rank_lost", "rank_final"} {
			if err := t.d.query("SELECT DISTINCT board FROM ", table, " WHERE member = ").arg(member).each(t, func(row *sql.Rows) error {
				var b rankcache.BoardID
				err := row.Scan((*string)(&b))
				if !slices.ContainsFunc(boards, func(has rankcache.BoardID) bool { whole, _, _ := class.CutShard(has); return has == b || whole == b }) {
					boards = append(boards, b)
				}
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return boards, err
}

// forgetInTurn forgets what is due, until ctx ends, while this ledger leads.
func (l *Ledger) forgetInTurn(ctx context.Context, leads func() bool) {
	for range tick.Every(ctx, forgetEvery) {
		if !leads() {
			continue
		}
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
			err := row.Scan((*string)(&f.board), &f.member, &f.run, &f.seq, &f.at)
			due = append(due, &f)
			return err
		})
	})
	for _, f := range due {
		meta, found, e := asked.Meta(ctx, f.board)
		life := time.Duration(meta.OrderLife) * time.Second
		if e == nil && now.Sub(time.UnixMilli(f.at)) >= 2*(life+lifeMore) {
			done := false
			if e = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) (err error) { done, err = f.forget(t, !found); return err }); e == nil && done {
				n++
			}
		}
		err = errors.Join(err, e)
	}
	return n, err
}

// forget gives the rows a pseudonym, unless the member still has a score on a board that Redis has, or the change that
// forgot it does not stand: that one may come again.
func (f *forgetting) forget(t *transaction, gone bool) (done bool, err error) {
	runs, err := t.boardRuns([]rankcache.BoardID{f.board})
	if err != nil {
		return false, err
	}
	there, last := false, wire.Update{} // the row of rank_score
	err = f.its(t.d.query("SELECT 1 FROM rank_forget")).add(" AND run = ").arg(f.run).add(" AND seq = ").arg(f.seq).add(" FOR UPDATE").
		each(t, func(*sql.Rows) error { there = true; return nil })
	if err != nil || !there {
		return false, err
	}
	var raw sql.NullFloat64
	err = f.its(t.d.query("SELECT run, seq, raw, COALESCE(data, '') FROM rank_score")).each(t, func(row *sql.Rows) error {
		return row.Scan(&last.Run, &last.Seq, &raw, &last.Data)
	})
	if err != nil {
		return false, err
	}
	p := &pseudonym{forgetting: f, name: wire.ForgottenPrefix + randomHex(), upto: wire.Update{Run: uint64(f.run), Seq: uint64(f.seq)}} // #nosec G115 -- stored from uint64
	if p.back = later(&last, &p.upto); !p.back {
		p.upto = last
	}
	if p.scored = !p.back && raw.Valid; p.scored {
		if !gone {
			return false, nil
		}
		p.share = wire.Hash(p.name, raw.Float64) - wire.Hash(rankcache.JoinData(f.member, last.Data), raw.Float64)
	}
	if err := p.replace(t, runs); err != nil {
		return false, err
	}
	_, err = f.its(t.d.query("DELETE FROM rank_forget")).exec(t)
	return true, err
}

func randomHex() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}
