package ledger

import (
	"testing"

	"rankcache/wire"
)

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
