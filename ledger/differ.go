package ledger

import (
	"slices"
	"strings"

	"rankcache"
)

// Difference is a member that Redis and the ledger have with different raw scores; nil: not at
// all.
type Difference struct {
	Member string   `json:"member"`
	Redis  *float64 `json:"redis_raw"`
	Ledger *float64 `json:"ledger_raw"`
}

// Differences are what [Differ] has found.
type Differences struct {
	Ledger  int          // members that the ledger has
	Members int          // that differ
	List    []Difference // the first of them, by member
}

// ByMember returns what a scan of Redis gave in the order of the members' bytes, each once. It takes the rows.
func ByMember(rows []rankcache.Entry) []rankcache.Entry {
	slices.SortFunc(rows, func(a, b rankcache.Entry) int { return strings.Compare(a.Member, b.Member) })
	return slices.CompactFunc(rows, func(a, b rankcache.Entry) bool { return a.Member == b.Member })
}

// Differ compares members of Redis with those that each calls a function for, both in the order of
// their bytes, and lists at most so many differences. Its error is that of each.
func Differ(rows []rankcache.Entry, most int, each func(func(rankcache.Entry) error) error) (d Differences, err error) {
	d.List = []Difference{}
	add := func(member string, redis, ledger *float64) {
		if d.Members++; len(d.List) < most {
			d.List = append(d.List, Difference{member, redis, ledger})
		}
	}
	err = each(func(e rankcache.Entry) error {
		d.Ledger++
		for len(rows) > 0 && rows[0].Member < e.Member {
			add(rows[0].Member, &rows[0].Score, nil)
			rows = rows[1:]
		}
		if len(rows) == 0 || rows[0].Member != e.Member {
			add(e.Member, nil, &e.Score)
			return nil
		}
		if rows[0].Score != e.Score {
			add(e.Member, &rows[0].Score, &e.Score)
		}
		rows = rows[1:]
		return nil
	})
	for i := range rows {
		add(rows[i].Member, &rows[i].Score, nil)
	}
	return d, err
}
