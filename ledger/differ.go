package ledger

import (
	"cmp"
	"slices"
	"strings"

	"rankcache"
)

// Difference is a member with other raw scores, nil: not at all, or other data, "": none, in Redis and ledger.
type Difference struct {
	Member     string   `json:"member"`
	Redis      *float64 `json:"redis_raw"`
	Ledger     *float64 `json:"ledger_raw"`
	RedisData  string   `json:"redis_data,omitempty"`
	LedgerData string   `json:"ledger_data,omitempty"`
}

// difference returns that of a row of Redis and one of the ledger; nil: there is none.
func difference(redis, ledger *rankcache.Entry) (d Difference) {
	if redis != nil {
		d.Member, d.RedisData = rankcache.SplitData(redis.Member)
		d.Redis = &redis.Score
	}
	if ledger != nil {
		d.Member, d.LedgerData = rankcache.SplitData(ledger.Member)
		d.Ledger = &ledger.Score
	}
	return d
}

// Differences are what [Differ] has found.
type Differences struct {
	Ledger  int          // members that the ledger has
	Members int          // that differ
	List    []Difference // the first of them, by member
}

// ByMember returns what a scan of Redis gave in the order of the members' bytes, each once. It takes the rows.
func ByMember(rows []rankcache.Entry) []rankcache.Entry {
	slices.SortFunc(rows, compareMembers)
	return slices.CompactFunc(rows, func(a, b rankcache.Entry) bool { return compareMembers(a, b) == 0 })
}

// ByRank sorts as ZREVRANGE does.
func ByRank(rows []rankcache.Entry) {
	slices.SortFunc(rows, func(a, b rankcache.Entry) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(b.Member, a.Member))
	})
}

func compareMembers(a, b rankcache.Entry) int {
	if a.Member == b.Member {
		return 0
	}
	one, _ := rankcache.SplitData(a.Member)
	other, _ := rankcache.SplitData(b.Member)
	return strings.Compare(one, other)
}

// Differ compares members of Redis with each's, both joined and by their bytes, and lists most differences at most.
func Differ(rows []rankcache.Entry, most int, each func(func(rankcache.Entry) error) error) (d Differences, err error) {
	d.List = []Difference{}
	add := func(redis, ledger *rankcache.Entry) {
		if d.Members++; len(d.List) < most {
			d.List = append(d.List, difference(redis, ledger))
		}
	}
	err = each(func(e rankcache.Entry) error {
		d.Ledger++
		for len(rows) > 0 && compareMembers(rows[0], e) < 0 {
			add(&rows[0], nil)
			rows = rows[1:]
		}
		if len(rows) == 0 || compareMembers(rows[0], e) > 0 {
			add(nil, &e)
			return nil
		}
		if rows[0] != e {
			add(&rows[0], &e)
		}
		rows = rows[1:]
		return nil
	})
	for i := range rows {
		add(&rows[i], nil)
	}
	return d, err
}
