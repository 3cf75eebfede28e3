package ledger

import (
	"context"
	"slices"
	"testing"

	"rankcache"
	"rankcache/wire"
)

// A failover takes acknowledged changes back and gives their seqs to others: the lost ones
// go to rank_lost when the first of the others comes, and their members back to what they
// had.
func TestLostHistoryIsMovedAside(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		next, _ := feed(t, s, 0, h.incr("a", 1), h.incr("b", 2), h.change(wire.OpDelete, "b", 0, "gone"), h.incr("c", 3))
		replica := h.clone()
		lost := []*wire.LedgerUpdate{h.incr("a", 10), h.incr("b", 20), h.incr("new", 30), h.change(wire.OpDelete, "c", 0, "lost"), h.incr("a", 40)}
		next, _ = feed(t, s, next, lost...)
		next, done := feed(t, s, next, replica.change(wire.OpIncr, "c", 5, "after"), replica.change(wire.OpSet, "d", 7, "after"))
		if want := (Result{Rows: 2, Lost: 5}); done != want {
			t.Errorf("result %+v, want %+v", done, want)
		}
		wantProved(t, s, []*history{replica})
		// The same changes applied again, with their order ids, at other seqs.
		var again []*wire.LedgerUpdate
		for _, u := range lost {
			again = append(again, replica.change(u.Op, u.Member, u.Delta, u.OrderID))
		}
		if _, done = feed(t, s, next, again...); done != (Result{Rows: 5}) {
			t.Errorf("redressed: %+v", done)
		}
		wantProved(t, s, []*history{replica})
		if n := count(t, s, "rank_lost WHERE redressed_seq IS NULL"); n != 5 {
			t.Errorf("%d lost rows, want 5", n)
		}
	})
}

// held is what Redis has of a history.
type held struct {
	updates []*wire.Update
	metas   map[rankcache.BoardID]wire.Meta
}

func (h held) Metas(context.Context, []rankcache.BoardID) (map[rankcache.BoardID]wire.Meta, error) {
	return h.metas, nil
}

func (h held) Verdicts(_ context.Context, changes []*wire.Update) ([]Verdict, error) {
	verdicts := make([]Verdict, len(changes))
	for i, u := range changes {
		verdicts[i] = Lost
		if slices.ContainsFunc(h.updates, func(mine *wire.Update) bool { return same(mine, u) }) {
			verdicts[i] = Held
		}
	}
	return verdicts, nil
}

// The updates of a dying writer may come after those of the new history.
func TestLateUpdatesOfALostHistory(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		next, _ := feed(t, s, 0, h.incr("a", 1), h.incr("b", 2))
		replica := h.clone()
		lost := []*wire.LedgerUpdate{h.incr("a", 10), h.incr("c", 10), h.incr("c", 10)}
		one, two, three := replica.change(wire.OpIncr, "b", 5, "n1"), replica.change(wire.OpIncr, "d", 6, "n2"), replica.change(wire.OpIncr, "a", 6, "n3")
		s.Orders = held{updates: []*wire.Update{&one.Update, &two.Update, &three.Update}}
		// Two of the new history are there when the old one's come, and one comes behind.
		next, _ = feed(t, s, next, one, two)
		next, done := feed(t, s, next, lost[0], lost[1])
		if done != (Result{Lost: 2}) {
			t.Errorf("late: %+v", done)
		}
		if next, done = feed(t, s, next, lost[0]); done != (Result{Repeats: 1}) {
			t.Errorf("late and again: %+v", done)
		}
		next, _ = feed(t, s, next, lost[2])
		if _, done = feed(t, s, next, three); done != (Result{Rows: 1, Lost: 1}) {
			t.Errorf("the row before it: %+v", done)
		}
		wantProved(t, s, []*history{replica})
	})
}

// A later run has the board: rows that a lower run has beyond its beginning are lost,
// whenever they come.
func TestRowsOfALowerRun(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		next, _ := feed(t, s, 0, h.incr("a", 1), h.incr("b", 2))
		on := h.clone()
		on.run = 6
		beyond, late := h.incr("a", 10), h.incr("a", 20)
		next, _ = feed(t, s, next, beyond)
		next, done := feed(t, s, next, on.incr("b", 4))
		if done != (Result{Rows: 1, Lost: 1}) {
			t.Errorf("the new run: %+v", done)
		}
		if next, done = feed(t, s, next, late); done != (Result{Lost: 1}) {
			t.Errorf("late: %+v", done)
		}
		wantProved(t, s, []*history{on})
		if next, done = feed(t, s, next, beyond, late); done != (Result{Repeats: 2}) {
			t.Errorf("again: %+v", done)
		}
		// The board begins anew: what it had is not its own any more.
		anew := newHistory("b", 9)
		if _, done = feed(t, s, next, anew.incr("c", 1)); done != (Result{Rows: 1}) {
			t.Errorf("anew: %+v", done)
		}
		p, err := s.Prove(t.Context(), "b")
		if err != nil || !p.Proved || p.Members != 1 {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

// An order id that was applied at two places is one change: Redis has one of them.
func TestOneOrderAtTwoPlaces(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		first, second := h.change(wire.OpIncr, "a", 1, "o"), h.change(wire.OpIncr, "a", 1, "o")
		next, _ := feed(t, s, 0, first)
		if _, done := feed(t, s, next, second, h.incr("b", 1)); done != (Result{Rows: 2, Lost: 1}) {
			t.Errorf("%+v", done)
		}
		wantScores(t, s, h)
		if p, err := s.Prove(t.Context(), "b"); err != nil || p.Missing != 1 || p.Proved {
			t.Errorf("%+v, %v: want one row missing", p, err)
		}
	})
}

// What a member had before the loss may be too old to be there.
func TestLossBehindWhatWasRemoved(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		next, _ := feed(t, s, 0, h.incr("a", 1), h.incr("b", 2))
		old := h.incr("b", 3)
		next, _ = feed(t, s, next, old)
		removed, err := s.Retain(t.Context(), Keep{Classes: map[string]days{"gift": 1}}, at(old.At))
		if err != nil || removed != 2 {
			t.Fatalf("%d removed, %v, want 2", removed, err)
		}
		wantProved(t, s, []*history{h}) // the scores are all there
		replica := h.clone()
		next, _ = feed(t, s, next, h.incr("a", 4))
		feed(t, s, next, replica.change(wire.OpIncr, "b", 1, "n"))
		if p, err := s.Prove(t.Context(), "b"); err != nil || !p.Incomplete || p.Proved {
			t.Errorf("%+v, %v: want it incomplete", p, err)
		}
	})
}
