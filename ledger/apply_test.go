package ledger

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rankcache/wire"
)

func TestAppliedChangesAreInAllTables(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		updates := []*wire.LedgerUpdate{h.incr("a", 1), h.incr("a ", 2), h.incr("A", 3), h.change(wire.OpSet, "a", 0.1, "x"), h.change(wire.OpDelete, "A", 0, "X"),
			h.change(wire.OpSet, "ünï\\'\"", 1e300, "x "), h.change(wire.OpSet, "t", 5e-324, ""), h.change(wire.OpSet, "u", -1048576.9999995232, ""),
			h.change(wire.OpSet, "last", 0, "drives out"), h.change(wire.OpTrim, "last", 0, "drives out"), h.change(wire.OpTrim, "t", 0, "drives out")}
		next, done := feed(t, s, 0, updates...)
		if want := (Result{Rows: len(updates)}); done != want {
			t.Errorf("result %+v, want %+v", done, want)
		}
		wantScores(t, s, h)
		for _, u := range updates {
			keys, _, err := lookUp(t, s, &u.Update)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&u.Update, keys[logKey{u.Board, u.Run, u.Seq}]); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		}
		offsets, err := s.Offsets(t.Context(), Topic{Name: "topic"})
		if err != nil || offsets[0] != next {
			t.Errorf("offsets %v, %v, want %d", offsets, err, next)
		}
	})
}

func lookUp(t testing.TB, s *Store, updates ...*wire.Update) (keys map[logKey]*wire.Update, orders map[orderKey]*wire.Update, err error) {
	err = s.in(t.Context(), 0, func(tx *transaction) (err error) {
		c := settling{t: tx}
		keys, orders, err = c.rows(updates)
		return err
	})
	return keys, orders, err
}

func TestRecordsReadAgainChangeNothing(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		updates := []*wire.LedgerUpdate{h.incr("a", 1), h.incr("b", 2), h.incr("a", 3)}
		next, _ := feed(t, s, 0, append(updates, updates...)...)
		next, done := feed(t, s, next, updates[2], h.incr("a", 4), updates[0])
		if want := (Result{Rows: 1, Repeats: 2}); done != want {
			t.Errorf("result %+v, want %+v", done, want)
		}
		wantScores(t, s, h)
		b := NewBatch("topic")
		b.Add(h.incr("a", 1), 0, next-1, next)
		if _, err := s.Apply(t.Context(), b); !errors.Is(err, ErrOvertaken) {
			t.Errorf("a batch that begins before the database's offset: %v, want %v", err, ErrOvertaken)
		}
		if n := count(t, s, "rank_log"); n != 4 {
			t.Errorf("%d rows, want 4", n)
		}
	})
}

// Two writers publish what they have applied in either order.
func TestNeighboursOutOfOrder(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		one, two, three := h.incr("a", 1), h.change(wire.OpDelete, "a", 0, "d"), h.incr("b", 2)
		next, _ := feed(t, s, 0, two)
		next, _ = feed(t, s, next, three)
		_, done := feed(t, s, next, one)
		if done != (Result{Rows: 1}) {
			t.Errorf("result %+v", done)
		}
		wantScores(t, s, h)
		if n := count(t, s, "rank_board WHERE begin_seq = 1 AND first_seq = 1 AND seq = 3 AND base_run = 5"); n != 1 {
			t.Error("the board's row does not begin at seq 1 and end at 3")
		}
	})
}

func TestBadRecordsAreKeptAside(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		b := NewBatch("topic")
		b.AddBad("json", []byte{0, 0xff, '\''}, 0, 0, 0)
		b.AddBad("run", nil, 0, 0, 1)
		h := newHistory("b", 5)
		b.Add(h.incr("a", 1), 0, 0, 2)
		if done, err := s.Apply(t.Context(), b); err != nil || done != (Result{Rows: 1, Bad: 2}) {
			t.Errorf("%+v, %v", done, err)
		}
		if n := count(t, s, "rank_bad"); n != 2 {
			t.Errorf("%d bad records, want 2", n)
		}
	})
}
