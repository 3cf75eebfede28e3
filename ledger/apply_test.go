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

func TestBatchIsFull(t *testing.T) {
	b, h := NewBatch("topic"), newHistory("b", 1)
	for i := range int64(MaxBatch) {
		if !b.Add(h.incr("a", 1), 0, 0, i) {
			t.Fatalf("full after %d", i)
		}
	}
	if b.Add(h.incr("a", 1), 0, 0, MaxBatch) || b.AddBad("json", nil, 0, 0, MaxBatch) || b.Len() != MaxBatch {
		t.Error("a full batch takes more")
	}
}

func TestTablesOfALaterVersionAreRefused(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		if err := s.Migrate(t.Context()); err != nil {
			t.Errorf("a second time: %v", err)
		}
		if _, err := s.db.ExecContext(t.Context(), "INSERT INTO rank_schema (version) VALUES (99)"); err != nil {
			t.Fatal(err)
		}
		if err := s.Migrate(t.Context()); !errors.Is(err, ErrSchema) {
			t.Errorf("%v, want %v", err, ErrSchema)
		}
	})
}

// Records that an older ledger could not read are applied once, whoever else takes them, under the rules of all others; what is no change stays.
func TestBadRecordsAreTakenAgain(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h, done := newHistory("b", 5), newHistory("closed", 5)
		var aside []*wire.LedgerUpdate
		feed(t, s, 0, h.incr("a", 1), done.incr("a", 1))
		for range 600 {
			aside = append(aside, h.incr("a", 1))
		}
		aside = append(aside, done.incr("a", 2), aside[7], h.change(wire.OpSet, "a", 9, ""))
		b := NewBatch("topic")
		b.AddBad("json", []byte("no change"), 0, 2, 2)
		for i, u := range aside {
			b.AddBad("version", wire.AppendLedgerUpdate(nil, u), 0, 2, int64(i+3))
		}
		_, err := s.Apply(t.Context(), b)
		must(t, err)
		must(t, s.SaveFinal(t.Context(), &Final{Final: wire.Final{Board: "closed", Class: "c"}}))
		next := int64(len(aside) + 3)
		feed(t, s, next, h.incr("b", 3))
		taken := make(chan int, 2)
		for range 2 {
			go func() {
				n, err := s.TakeAgain(t.Context())
				if err != nil {
					t.Error(err)
				}
				taken <- n
			}()
		}
		if n := <-taken + <-taken; n != len(aside) {
			t.Errorf("%d records taken, want %d", n, len(aside))
		}
		wantScores(t, s, h)
		for _, board := range []*history{h, done} {
			if p, err := s.Prove(t.Context(), board.board); err != nil || !p.Proved || p.State.Seq != board.seq {
				t.Errorf("%s: %+v, %v", board.board, p, err)
			}
		}
		if n := count(t, s, "rank_bad"); n != 1 {
			t.Errorf("%d records are left, want the one that is no change", n)
		}
		if f, err := s.FinalOf(t.Context(), "closed", 0, 1); err != nil || f.Seq != 0 {
			t.Errorf("the final has changed: %+v, %v", f, err)
		}
	})
}

// TestForgotten: a member that is forgotten has no score, data or what hides it any more, and the board adds up from
// change to change.
func TestForgotten(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		updates := []*wire.LedgerUpdate{h.changeWith(wire.OpSet, "a", 1, "o1", "\x00data"), h.incr("b", 2), h.incr("c", 3), h.change(wire.OpHide, "b", 7, "hide/7/b"),
			h.change(wire.OpForget, "a", 0, "f"), h.change(wire.OpForget, "b", 0, "f"), h.change(wire.OpForget, "nobody", 0, "f"), h.incr("c", 1)}
		for _, u := range updates {
			var read wire.LedgerUpdate
			must(t, wire.DecodeLedgerUpdate(wire.AppendLedgerUpdate(nil, u), &read))
			*u = read
		}
		feed(t, s, 0, updates...)
		wantScores(t, s, h)
		for _, u := range updates {
			keys, _, err := lookUp(t, s, &u.Update)
			must(t, err)
			if diff := cmp.Diff(&u.Update, keys[logKey{u.Board, u.Run, u.Seq}]); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		}
		var left int
		must(t, s.db.QueryRow("SELECT count(*) FROM rank_score WHERE member <> 'c' AND (score IS NOT NULL OR raw IS NOT NULL OR data IS NOT NULL OR veil IS NOT NULL)").Scan(&left))
		if why, err := s.Fold(t.Context(), "b"); left != 0 || err != nil || why != "" {
			t.Errorf("%d rows have something left; %q %v", left, why, err)
		}
	})
}
