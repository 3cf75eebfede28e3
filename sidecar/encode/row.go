package encode

import (
	"context"
	"time"

	"rankcache"
	"rankcache/sidecar"
)

// AppendRow appends a row as its board's pages have it. A nil profile is null where profiles are; a nil trend none.
func AppendRow(dst []byte, rank int, e *rankcache.Entry, data *rankcache.Data, form rankcache.ScoreForm, trend *Trend, profiles bool, profile []byte) []byte {
	s := Show{Form: form, Trend: trend}
	dst = s.appendPlace(append(dst, '{'), rankcache.Standing{Member: e.Member, Score: e.Score, Rank: rank}, rankcache.Ahead{}, 0, data)
	if profiles {
		j := Joined{Profiles: [][]byte{profile}}
		dst = AppendProfile(dst, &j, 0)
	}
	return append(dst, '}')
}

// AppendFrame appends what stands before a page's rows and behind them. missing profiles may come, -1: it has none.
func AppendFrame(head, tail []byte, q *rankcache.Query, a *rankcache.Answer, missing int) ([]byte, []byte) {
	frame := *a
	frame.Entries = nil
	j := Joined{Missing: missing}
	if missing >= 0 {
		j.Profiles = [][]byte{}
	}
	from := len(head)
	head = AppendPage(head, q, &frame, &Show{}, &j)
	end := from + indexRows(head[from:])
	return head[:end], append(tail, head[end:]...)
}

// indexRows returns where the rows of a page without any begin.
func indexRows(page []byte) int {
	const empty = `"entries":[`
	for i := len(page) - len(empty); ; i-- { // a board's id has no quotes
		if string(page[i:i+len(empty)]) == empty {
			return i + len(empty)
		}
	}
}

// Joined is the profiles of some rows, in their order.
type Joined struct {
	Profiles [][]byte // nil when profiles were not requested
	Missing  int
	Fresh    func() bool
	Asked    time.Time // when the profile cache was
	Offsets  []int     // filled with where each row's profile begins in the encoded page; nil: not needed
}

// Join asks for the profiles of all entries in one call.
func Join(ctx context.Context, p sidecar.Profiles, entries []rankcache.Entry) Joined {
	members := make([]string, len(entries))
	for i := range entries {
		members[i] = entries[i].Member
	}
	return JoinMembers(ctx, p, members)
}

func JoinMembers(ctx context.Context, p sidecar.Profiles, members []string) Joined {
	j := Joined{Profiles: make([][]byte, len(members)), Asked: time.Now()}
	j.Missing, j.Fresh = p.Join(ctx, members, j.Profiles)
	return j
}

// at returns the profile of row i as JSON, and whether profiles were requested.
func (j *Joined) at(i int) ([]byte, bool) {
	if j.Profiles == nil {
		return nil, false
	}
	if j.Profiles[i] == nil {
		return []byte("null"), true
	}
	return j.Profiles[i], true
}
