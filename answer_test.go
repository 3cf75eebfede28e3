package rankcache

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMembersOnATop: what a head of a board tells of a member, and what it can't.
func TestMembersOnATop(t *testing.T) {
	rows := []Entry{{Member: "a", Score: 9}, {Member: "b", Score: 7}, {Member: "c", Score: 7}, {Member: "d", Score: 7}, {Member: "e", Score: 5}}
	own := func(i, first, end int, better ...float64) Own {
		s := Own{Standing: Standing{Member: rows[i].Member, Score: rows[i].Score, Rank: i + 1}, First: first}
		if end > 0 {
			s.Neighbours = rows[first:end]
		}
		if s.HasBetter = len(better) > 0; s.HasBetter {
			s.Better = better[0]
		}
		return s
	}
	for _, c := range []struct {
		name, member  string
		around        int
		gap           bool
		part, ofWhole bool // whether a top that is a part of the board tells it, and one that is all of it
		want          Own
	}{
		{"the first", "a", 5, true, true, true, own(0, 0, 3)},
		{"behind a tie", "d", 3, true, true, true, own(3, 2, 5, 9)},
		{"at the end", "e", 1, true, true, true, own(4, 4, 5, 7)},
		{"beyond the end", "e", 3, true, false, true, own(4, 3, 5, 7)},
		{"no gap", "b", 1, false, true, true, own(1, 1, 2)},
		{"no neighbours", "e", 0, true, true, true, own(4, 0, 0, 7)},
		{"absent", "x", 3, true, false, true, Own{Standing: Standing{Member: "x"}}},
	} {
		q := &Query{Limit: 1, Members: []string{c.member}, Around: c.around, Gap: c.gap, Percentile: true}
		if row := max(c.want.Rank-1, 0); c.want.Rank > 0 {
			if c.around > 0 {
				row = c.want.First
			}
			c.want.Ahead = Ahead{Members: []int{0, 1, 1, 1, 4}[row], Scores: -1}
		}
		for members, told := range map[int]bool{len(rows): c.ofWhole, 1000: c.part} {
			var a Answer
			(&Top{Entries: rows, Members: members}).Answer(q, &a, time.Time{})
			if ok := a.Own[0].Err == nil; ok != told {
				t.Errorf("%s, %d members: told %v, want %v", c.name, members, ok, told)
			}
			c.want.Stamp, c.want.Source = a.Stamp, SourceHot
			if diff := cmp.Diff(c.want, a.Own[0]); told && diff != "" {
				t.Errorf("%s, %d members (-want +got):\n%s", c.name, members, diff)
			}
		}
	}
}
