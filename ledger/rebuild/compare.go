package rebuild

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"rankcache"
	"rankcache/ledger"
)

// maxListed is how many differences are listed.
const maxListed = 1000

// Difference is a member that Redis and the ledger have with different raw scores; nil: not
// at all.
type Difference struct {
	Member string   `json:"member"`
	Redis  *float64 `json:"redis_raw"`
	Ledger *float64 `json:"ledger_raw"`
}

// Comparison is what a rebuild would change.
type Comparison struct {
	Redis, Ledger               rankcache.State // a zero state: there is no such board
	RedisMembers, LedgerMembers int
	Earlier                     int             // members of earlier lives, which a rebuild leaves out
	Before                      *ledger.Earlier // the life before the board began again, nil if there is none
	Differ                      int             // members
	List                        []Difference
	// Refused is why the board would not be rebuilt now.
	Refused error
}

// Compare compares the members of a board that Redis has with those of the ledger. Those that
// are changed meanwhile may differ. It changes nothing.
func (r *Rebuilder) Compare(ctx context.Context, b rankcache.BoardID) (*Comparison, error) {
	c := &Comparison{List: []Difference{}}
	var rows []rankcache.Entry
	_, after, err := r.opts.Origin.Scan(ctx, b, func(batch []rankcache.Entry) error { rows = append(rows, batch...); return nil })
	if err != nil {
		return nil, fmt.Errorf("board %s: %w", b, err)
	}
	slices.SortFunc(rows, func(a, b rankcache.Entry) int { return strings.Compare(a.Member, b.Member) })
	rows = slices.CompactFunc(rows, func(a, b rankcache.Entry) bool { return a.Member == b.Member }) // a scan may return a member twice
	c.Redis, c.RedisMembers = after.State, len(rows)
	w := &work{Rebuilder: r, board: b}
	err = r.opts.Store.Snapshot(ctx, b, func(v *ledger.Snapshot) (err error) {
		c.Ledger, c.Before, c.Refused = v.State, v.Before, w.check(v, after.Seq)
		if c.Earlier, err = v.Earlier(); err != nil {
			return err
		}
		return v.Members(func(e rankcache.Entry) error {
			c.LedgerMembers++
			rows = c.pass(rows, e.Member)
			if len(rows) == 0 || rows[0].Member != e.Member {
				c.add(nil, &e)
				return nil
			}
			if rows[0].Score != e.Score {
				c.add(&rows[0], &e)
			}
			rows = rows[1:]
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("board %s: %w", b, err)
	}
	for i := range rows {
		c.add(&rows[i], nil)
	}
	return c, nil
}

// pass adds the rows before a member, which the ledger does not have, and returns the others.
func (c *Comparison) pass(rows []rankcache.Entry, member string) []rankcache.Entry {
	for len(rows) > 0 && rows[0].Member < member {
		c.add(&rows[0], nil)
		rows = rows[1:]
	}
	return rows
}

func (c *Comparison) add(redis, ledger *rankcache.Entry) {
	if c.Differ++; len(c.List) >= maxListed {
		return
	}
	var d Difference
	if redis != nil {
		d.Member, d.Redis = redis.Member, &redis.Score
	}
	if ledger != nil {
		d.Member, d.Ledger = ledger.Member, &ledger.Score
	}
	c.List = append(c.List, d)
}
