package rebuild

import (
	"context"
	"fmt"

	"rankcache"
	"rankcache/ledger"
)

const maxListed = 1000 // how many differences are listed

// Comparison is what a rebuild would change.
type Comparison struct {
	Redis, Ledger               rankcache.State // a zero state: there is no such board
	RedisMembers, LedgerMembers int
	Earlier                     int             // members of earlier lives, which a rebuild leaves out
	Before                      *ledger.Earlier // the life before the board began again, nil if there is none
	Differ                      int             // members
	List                        []ledger.Difference
	Hidden                      int    // members that are, or were, hidden otherwise
	Forked                      string // the board's other histories that its topic has
	Refused                     error  // why the board would not be rebuilt now
}

// Compare compares Redis's members of a board with the ledger's, but for changes meanwhile. It changes nothing.
func (r *Rebuilder) Compare(ctx context.Context, b rankcache.BoardID) (*Comparison, error) {
	c := &Comparison{}
	var rows []rankcache.Entry
	_, after, err := r.opts.Origin.Scan(ctx, b, func(batch []rankcache.Entry) error { rows = append(rows, batch...); return nil })
	if err != nil {
		return nil, fmt.Errorf("board %s: %w", b, err)
	}
	rows = ledger.ByMember(rows)
	c.Redis, c.RedisMembers = after.State, len(rows)
	w := &work{Rebuilder: r, board: b, rules: r.opts.Rules(b)}
	differ := func(members func(func(rankcache.Entry) error) error) error {
		found, err := ledger.Differ(rows, maxListed, members)
		c.LedgerMembers, c.Differ, c.List = found.Ledger, found.Members, found.List
		return err
	}
	if r.opts.Updates != nil {
		if err := w.compareLog(ctx, c, differ); err != nil {
			return nil, fmt.Errorf("board %s: %w", b, err)
		}
		return c, nil
	}
	err = r.opts.Store.Snapshot(ctx, b, func(v *ledger.Snapshot) (err error) {
		c.Ledger, c.Before, c.Refused = v.State, v.Before, w.check(v, after.Seq)
		if c.Earlier, err = v.Earlier(); err != nil {
			return err
		}
		if c.Hidden, err = w.compareHidden(ctx, v); err != nil {
			return err
		}
		return differ(v.Members)
	})
	if err != nil {
		return nil, fmt.Errorf("board %s: %w", b, err)
	}
	return c, nil
}
