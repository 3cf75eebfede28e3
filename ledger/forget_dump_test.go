package ledger

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"rankcache"
	"rankcache/wire"
)

// dumped are the tables that a dump has, but for that of the schema's version.
var dumped = []string{"rank_log", "rank_lost", "rank_score", "rank_board", "rank_final", "rank_final_board", "rank_offset", "rank_forget"}

// dump keeps all rows, and returns what puts them back.
func dump(t *testing.T, s *Store) (restore func()) {
	t.Helper()
	all := func(texts ...string) {
		t.Helper()
		for _, table := range dumped {
			for _, text := range texts {
				_, err := s.db.ExecContext(t.Context(), fmt.Sprintf(text, table))
				must(t, err)
			}
		}
	}
	all("CREATE TABLE dump_%[1]s AS SELECT * FROM %[1]s")
	ids := "" // as they were
	if s.d.postgres {
		ids = "OVERRIDING SYSTEM VALUE "
	}
	return func() { t.Helper(); all("DELETE FROM %[1]s", "INSERT INTO %[1]s "+ids+"SELECT * FROM dump_%[1]s") }
}

// paid returns the places of a final as text, with a dash for each pseudonym, and wants its checksum to be that of its
// rows and of the board.
func paid(t *testing.T, s *Store, board rankcache.BoardID) (places string) {
	t.Helper()
	f, err := s.FinalOf(t.Context(), board, 0, 9)
	must(t, err)
	p, err := s.Prove(t.Context(), board)
	must(t, err)
	sum := uint64(0)
	for i, e := range f.Top {
		sum += wire.Hash(e.Member, e.Score)
		member, _ := rankcache.SplitData(e.Member)
		if wire.Forgotten(e.Member) {
			member = "-"
		}
		places += fmt.Sprint(i+1, " ", member, " ", e.Score, ", ")
	}
	if sum &= wire.SumMask; f.Sum != sum || p.Sum != sum || f.Members != len(f.Top) {
		t.Errorf("the final of %d members has %012x, its rows %012x, the board %012x", f.Members, f.Sum, sum, p.Sum)
	}
	return places
}

// TestForgottenAndAnOlderDump: a dump of before the forgetting is restored. Records that are read again forget again on the
// open board; on the closed one, whose final was paid, the command is repeated. Then all is as it was, and proved.
func TestForgottenAndAnOlderDump(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("open", 5)
		next, _ := feed(t, s, 0, h.incr("a", 1), h.secrets(wire.OpIncr, 2))
		_, next = closedBoard(t, s, next, newHistory("b", 5), "b")
		restore := dump(t, s)
		before := paid(t, s, "b")
		if want := "1 c 5, 2 " + secret + " 3, 3 a 2, "; before != want {
			t.Fatalf("paid %s, want %s", before, want)
		}
		since := []*wire.LedgerUpdate{h.incr("a", 1), h.change(wire.OpForget, secret, 0, "f1"), h.incr("c", 4)}
		forget := func() { // the command finds the boards, and the log has its record
			t.Helper()
			boards, err := s.BoardsOf(t.Context(), secret)
			if must(t, err); slices.Contains(boards, "b") {
				must(t, s.ForgetGone(t.Context(), "b", secret))
			}
			if n := forgetAt(t, s, 49*time.Hour, knows{}); n == 0 || traces(t, s, secret) != 0 || count(t, s, "rank_forget") != 0 {
				t.Errorf("%d forgotten, %d rows have the id", n, traces(t, s, secret))
			}
			wantWhole(t, s, "open")
			wantWhole(t, s, "b")
			wantScores(t, s, h)
			if now := paid(t, s, "b"); now != "1 c 5, 2 - 3, 3 a 2, " {
				t.Errorf("paid %s, and then %s", before, now)
			}
		}
		feed(t, s, next, since...)
		forget()
		restore()
		feed(t, s, next, since...)
		if n := forgetAt(t, s, 49*time.Hour, knows{}); n != 1 || count(t, s, "rank_log WHERE board = 'open' AND member = '"+secret+"'") != 0 {
			t.Errorf("%d forgotten by records that are read again, want the open board", n)
		}
		if paid(t, s, "b") != before {
			t.Error("the dump has nothing of the closed board's forgetting, and yet it was done")
		}
		forget()
		if forgetAt(t, s, 49*time.Hour, knows{}) != 0 {
			t.Error("forgotten twice")
		}
	})
}
