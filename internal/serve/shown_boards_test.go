package serve

import (
	"fmt"
	"slices"
	"testing"

	"rankcache"
)

// TestShownBoards: boards in trouble have series of their own, then the largest, and of
// equal ones those that had them before.
func TestShownBoards(t *testing.T) {
	var all []rankcache.BoardStatus
	for i := range 100 {
		all = append(all, rankcache.BoardStatus{Board: rankcache.BoardID(fmt.Sprintf("b%02d", i)), State: rankcache.StateOpen, Members: 1000})
	}
	s := newShownBoards(3, func() []rankcache.BoardStatus { return slices.Clone(all) })
	expect := func(when string, want ...rankcache.BoardID) {
		t.Helper()
		s.choose()
		var got []rankcache.BoardID
		for i := range all {
			if s.label(all[i].Board) == string(all[i].Board) {
				got = append(got, all[i].Board)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	if s.label("b00") != otherBoards {
		t.Error("a board is shown before any was chosen")
	}
	expect("all alike", "b00", "b01", "b02")
	all[50].Members = 5000
	expect("a larger one", "b00", "b01", "b50")
	all[70].State = rankcache.StateGivenUp
	expect("one given up", "b00", "b50", "b70")
	all[70].State, all[50].Members = rankcache.StateOpen, 1010
	expect("all alike again", "b00", "b50", "b70")
	all[90].Age = 40e9
	expect("an old one", "b00", "b50", "b90")
	s.most = 0
	expect("none wanted")
	s.most = 1000
	s.choose()
	if n := len(*s.chosen.Load()); n != len(all) {
		t.Errorf("%d of %d boards are shown", n, len(all))
	}
	if rankcache.BoardID(otherBoards).Check() == nil {
		t.Errorf("%s may be the id of a board", otherBoards)
	}
}
