package localboard

import (
	"testing"

	"rankcache"
)

// Redis had the board marked at seq 6: a copy of an earlier state may lack what it was marked for.
func TestPrimedFromItsState(t *testing.T) {
	s := newFixture(t)
	primed := func(what string, want bool) {
		t.Helper()
		as := make([]rankcache.Answer, 1)
		s.board.Read(t.Context(), []rankcache.Query{{Limit: 1}}, as)
		if as[0].Err != nil || as[0].Primed != want {
			t.Errorf("%s, at seq %d: primed %v, %v; want %v", what, as[0].Seq, as[0].Primed, as[0].Err, want)
		}
	}
	primed("before a look", false)
	s.board.SetPrimed(true, rankcache.State{Seq: 6})
	primed("behind", false)
	s.board.Apply(fixtureUpdates[1])
	s.board.Publish()
	primed("there", true)
	s.board.SetPrimed(true, rankcache.State{Seq: 8})
	primed("a later look", true)
	s.board.SetPrimed(true, rankcache.State{Run: 1, Seq: 6})
	primed("another run", false)
	s.board.SetPrimed(false, rankcache.State{})
	primed("not marked any more", false)
}
