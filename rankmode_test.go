package rankcache

import (
	"slices"
	"testing"
)

// aheadOfAll returns what is ahead of each row, given that of the first, which has the index.
func aheadOfAll(first Ahead, index int, rows []Entry, form ScoreForm) (all []Ahead) {
	for i := range rows {
		if i > 0 {
			first = first.Next(index+i, rows[i].Score, rows[i-1].Score, form)
		}
		all = append(all, first)
	}
	return all
}

func TestRankModes(t *testing.T) {
	ahead := aheadOfAll(Ahead{}, 0, []Entry{{"a", 9}, {"b", 7}, {"c", 7}, {"d", 5}}, ScoreNumber)
	for mode, want := range map[RankMode][]int{Ordinal: {1, 2, 3, 4}, Competition: {1, 2, 2, 4}, Dense: {1, 2, 2, 3}} {
		var got []int
		for i, a := range ahead {
			got = append(got, a.Rank(mode, i))
		}
		if parsed, ok := ParseRankMode(mode.String()); !slices.Equal(got, want) || !ok || parsed != mode {
			t.Errorf("%v: %v, want %v; parsed as %v", mode, got, want, parsed)
		}
	}
	if _, ok := ParseRankMode("olympic"); ok {
		t.Error("there is another mode")
	}
}

// TestAheadOfALaterPage goes on from what is ahead of the page's first row.
func TestAheadOfALaterPage(t *testing.T) {
	rows := []Entry{{"a", 3}, {"b", 3}, {"c", 2}}
	for scores, next := range map[int]int{2: 3, -1: -1} { // -1: not counted
		want := []Ahead{{5, scores}, {5, scores}, {9, next}}
		if got := aheadOfAll(Ahead{5, scores}, 7, rows, ScoreNumber); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// TestAheadOfIntegers takes scores with one integer part for one score.
func TestAheadOfIntegers(t *testing.T) {
	rows := []Entry{{"a", 3.75}, {"b", 3.5}, {"c", 3}, {"d", 2.999}, {"e", -0.5}, {"f", -1}}
	want := []Ahead{{1, 1}, {1, 1}, {1, 1}, {5, 2}, {6, 3}, {6, 3}}
	if got := aheadOfAll(Ahead{1, 1}, 2, rows, ScoreInteger); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestPercentile(t *testing.T) {
	for _, c := range []struct{ ahead, members, want int }{
		{0, 1, 10_000}, {0, 57_000, 10_000}, {1, 57_000, 9_999}, {2, 3, 3_333}, {99_999, 100_000, 0}, {1, 1_000_000_000, 9_999}, {0, 0, 0},
	} {
		if got := (Ahead{Members: c.ahead}).Percentile(c.members); got != c.want {
			t.Errorf("%d ahead of %d: %d, want %d", c.ahead, c.members, got, c.want)
		}
	}
}
