package ledger

import (
	"context"
	"database/sql"
	"fmt"

	"rankcache"
	"rankcache/wire"
)

// folding goes through the changes of a board's life one by one, as Redis applied them.
type folding struct {
	members map[string]*wire.Update // the last change of each member that is known
	trimmed map[string]*wire.Update // that before its trim: the score that it goes on from
	all     bool                    // the board has no others
	last    *wire.Update
}

// add reports whether a change follows from those before it. Where the board was added up anew, as another client had
// changed it, its members are unknown again.
func (f *folding) add(u *wire.Update) bool {
	last, before := f.last, f.members[u.Member]
	switch f.last = u; {
	case last == nil:
		f.all = u.Seq == 1 && u.HasSum && (u.Members == 0 || u.Members == 1 && u.Seen())
		f.members = map[string]*wire.Update{u.Member: u}
		return !f.all || shareOf(u) == u.Sum
	case !last.HasSum || !u.HasSum:
		f.all, f.members = false, map[string]*wire.Update{u.Member: u}
		clear(f.trimmed) // what came since is unknown
		return true
	case !f.all && before == nil:
		f.members[u.Member] = u
		return true
	}
	f.members[u.Member] = u
	if addsUp(last.Sum, before, u) && f.goesOn(before, u) {
		return true
	}
	if u.Run != last.Run {
		f.all, f.members = false, map[string]*wire.Update{u.Member: u}
	}
	return u.Run != last.Run
}

// goesOn reports whether the score of a change follows from the last one of its member.
func (f *folding) goesOn(before, u *wire.Update) bool {
	from, isTrim := before, before != nil && before.Op == wire.OpTrim
	if isTrim {
		from = f.trimmed[u.Member]
	} else if u.Op == wire.OpTrim {
		f.trimmed[u.Member] = before
	}
	return isTrim && from == nil || goesOn(from, u)
}

// Fold checks that each kept change of a board's life follows from those before it, and returns why the first one
// does not, or "". It holds the last change of each member in memory.
func (s prover) Fold(ctx context.Context, board rankcache.BoardID) (why string, err error) {
	err = s.in(ctx, sql.LevelRepeatableRead, func(t *transaction) error {
		base, err := proofState(t, &Proof{Board: board})
		if err != nil {
			return err
		}
		f := folding{trimmed: make(map[string]*wire.Update)}
		q := t.d.query("SELECT ", logColumns, " FROM rank_log WHERE board = ").arg(string(board)).add(" AND run >= ").arg(base).add(" ORDER BY run, seq")
		return q.each(t, updatesTo(func(u *wire.Update) error {
			if !f.add(u) && why == "" {
				why = fmt.Sprintf("change %d of run %d, %s of %q, does not give its checksum and score from the changes before it", u.Seq, u.Run, u.Op, u.Member)
			}
			return nil
		}))
	})
	return why, err
}
