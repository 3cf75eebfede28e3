package ledger

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// secret is a member whose id is part of its orders, data and groups, as may be.
const secret = "u-77"

// has is a Redis that has every board, with an order life of a day.
type has struct{ knows }

func (has) Meta(context.Context, rankcache.BoardID) (wire.Meta, bool, error) {
	return wire.Meta{OrderLife: 24 * 3600}, true, nil
}

// traces counts the rows that have a member's id anywhere, but for those to be forgotten.
func traces(t *testing.T, s *Store, member string) (n int) {
	t.Helper()
	for table, columns := range map[string]string{"rank_log": "member order_id by_groups data given", "rank_lost": "member order_id by_groups data given", "rank_score": "member data", "rank_final": "member data"} {
		n += count(t, s, table+" WHERE "+strings.Join(strings.Fields(columns), " LIKE '%"+member+"%' OR ")+" LIKE '%"+member+"%'")
	}
	return n
}

// forgetAt forgets what is due at a time from now on, and returns how many were.
func forgetAt(t *testing.T, s *Store, after time.Duration, redis Redis) int {
	t.Helper()
	n, err := s.forgetDue(t.Context(), time.Now().Add(after), redis)
	must(t, err)
	return n
}

// wantWhole proves a board and each change of it.
func wantWhole(t *testing.T, s *Store, board rankcache.BoardID) {
	t.Helper()
	_, err := s.judge(t.Context(), time.Now().Add(time.Hour), knows{}) // what was set aside is lost
	must(t, err)
	p, err := s.Prove(t.Context(), board)
	must(t, err)
	if why, err := s.Fold(t.Context(), board); !p.Proved || err != nil || why != "" {
		t.Errorf("%s: %q, %q, %v: %+v", board, p.Why(), why, err, p)
	}
}

// secrets is a change of the secret member, which its order id, groups and data tell, too.
func (h *history) secrets(op wire.Op, number float64) *wire.LedgerUpdate {
	u := h.changeWith(op, secret, number, fmt.Sprint("gift-", secret, "-", h.run, "-", h.seq), "\x00car of "+secret)
	u.By = `{"guild":"` + secret + `"}`
	return u
}

// TestForgottenOnAnOpenBoard: rows keep the id until no order can come again, then a pseudonym is there, and all is proved.
// Records read again change nothing, and whoever comes back is somebody new, whose rows stay.
func TestForgottenOnAnOpenBoard(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		all := []*wire.LedgerUpdate{h.incr("a", 1), h.secrets(wire.OpIncr, 2), h.incr("c", 3), h.secrets(wire.OpSet, 9)}
		lost := h.clone()
		all = append(all, lost.secrets(wire.OpIncr, 70), lost.incr("c", 70))
		h.run = 6
		all = append(all, h.incr("a", 4), h.secrets(wire.OpIncr, 3), h.change(wire.OpForget, secret, 0, "f1"))
		next, _ := feed(t, s, 0, all...)
		if n := traces(t, s, secret); n < 6 || forgetAt(t, s, 23*time.Hour, knows{}) != 0 || forgetAt(t, s, 48*time.Hour, has{}) != 0 || traces(t, s, secret) != n {
			t.Errorf("rows lost their id too early, of %d", n)
		}
		if _, err := s.forgetDue(t.Context(), time.Now().Add(48*time.Hour), unread{}); err == nil || traces(t, s, secret) == 0 {
			t.Error("forgotten though Redis did not answer:", err)
		}
		if n := forgetAt(t, s, 49*time.Hour, has{}); n != 1 || traces(t, s, secret) != 0 || count(t, s, "rank_forget") != 0 {
			t.Errorf("%d forgotten, %d rows have the id", n, traces(t, s, secret))
		}
		check := func() {
			t.Helper()
			wantWhole(t, s, "b")
			wantScores(t, s, h)
		}
		check()
		// The member's share can't be found: no two sums of neighbours are left.
		if n := count(t, s, "rank_log WHERE sum IS NOT NULL"); n != 2 {
			t.Errorf("%d sums are left, want those before its first change and after its last", n)
		}
		if n := count(t, s, "(SELECT DISTINCT member FROM rank_log WHERE member LIKE 'forgotten:%' AND order_id IS NULL) AS x"); n != 1 {
			t.Errorf("%d pseudonyms", n)
		}
		next, done := feed(t, s, next, all...)
		if done.Rows != 0 || done.Repeats != len(all) || traces(t, s, secret) != 0 {
			t.Errorf("read again: %+v, %d rows have the id", done, traces(t, s, secret))
		}
		check()
		back := []*wire.LedgerUpdate{h.secrets(wire.OpIncr, 5), h.incr("a", 1)}
		next, _ = feed(t, s, next, back...)
		check()
		next, _ = feed(t, s, next, h.change(wire.OpForget, secret, 0, "f2"), h.change(wire.OpForget, secret, 0, "f3"), h.change(wire.OpForget, "nobody", 0, "f3"), h.secrets(wire.OpIncr, 6))
		if n := forgetAt(t, s, 49*time.Hour, has{}); n != 2 || forgetAt(t, s, 49*time.Hour, has{}) != 0 || traces(t, s, secret) != 2 {
			t.Errorf("%d forgotten, %d rows have the id, want those of somebody new", n, traces(t, s, secret))
		}
		check()
		next, _ = feed(t, s, next, h.secrets(wire.OpIncr, 7))
		check()
		if n := count(t, s, "(SELECT DISTINCT member FROM rank_log WHERE member LIKE 'forgotten:%') AS x"); n != 3 {
			t.Errorf("%d pseudonyms, want one for each forgetting", n)
		}
		// The board is closed, and the member asks again: what came since it was noted goes, too.
		must(t, s.ForgetGone(t.Context(), "b", secret))
		feed(t, s, next, h.secrets(wire.OpIncr, 8))
		must(t, s.ForgetGone(t.Context(), "b", secret))
		if n := forgetAt(t, s, 25*time.Hour, knows{}); n != 1 || traces(t, s, secret) != 0 {
			t.Errorf("%d forgotten, %d rows have the id", n, traces(t, s, secret))
		}
		wantWhole(t, s, "b")
	})
}

// closedBoard feeds a board with three members, of which the secret one is second, and saves its final.
func closedBoard(t *testing.T, s *Store, first int64, h *history, final rankcache.BoardID) (all []*wire.LedgerUpdate, next int64) {
	t.Helper()
	all = []*wire.LedgerUpdate{h.incr("a", 1), h.secrets(wire.OpIncr, 2), h.incr("c", 5), h.secrets(wire.OpIncr, 1), h.incr("a", 1)}
	next, _ = feed(t, s, first, all...)
	var rows []rankcache.Entry
	must(t, s.EachMember(t.Context(), h.board, func(e rankcache.Entry) error { rows = append(rows, e); return nil }))
	ByRank(rows)
	f := &Final{Final: wire.Final{Board: final, Class: "gift", Tag: "20261122", Members: 3, Top: rows}}
	f.State = rankcache.State{Run: h.run, Seq: h.seq, Sum: h.sum, HasSum: true}
	must(t, s.SaveFinal(t.Context(), f))
	return all, next
}

// TestForgottenOnAClosedBoard: while Redis has it nothing changes, as copies compare it. Then score and place are a
// pseudonym's, and board and final add up to one checksum, whatever is read again; shards have one final.
func TestForgottenOnAClosedBoard(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *Store) {
		next := int64(0)
		for board, final := range map[rankcache.BoardID]rankcache.BoardID{"b": "b", class.ShardID("split", 1): "split"} {
			h := newHistory(board, 5)
			all, end := closedBoard(t, s, next, h, final)
			if boards, err := s.BoardsOf(t.Context(), secret); err != nil || len(boards) != 1 || boards[0] != board {
				t.Errorf("boards %v, %v", boards, err)
			}
			for range 2 {
				must(t, s.ForgetGone(t.Context(), board, secret))
			}
			before := traces(t, s, secret)
			if n := forgetAt(t, s, 1000*time.Hour, has{}); n != 0 || traces(t, s, secret) != before {
				t.Errorf("%d forgotten in a board that Redis has", n)
			}
			if n := forgetAt(t, s, 25*time.Hour, knows{}); n != 1 || traces(t, s, secret) != 0 {
				t.Errorf("%d forgotten, %d rows have the id", n, traces(t, s, secret))
			}
			check := func() {
				t.Helper()
				wantWhole(t, s, board)
				f, err := s.FinalOf(t.Context(), final, 0, 9)
				must(t, err)
				p, err := s.Prove(t.Context(), board)
				must(t, err)
				if sum := f.Sum; sum != p.Sum || sum == h.sum || len(f.Top) != 3 || !wire.Forgotten(f.Top[1].Member) || f.Top[1].Score != 3 || f.Top[0].Member != "c" || f.Top[2].Member != "a" {
					t.Errorf("final %+v, the board adds up to %012x", f, p.Sum)
				}
			}
			check()
			if n := count(t, s, "rank_log WHERE sum IS NOT NULL AND board = '"+string(board)+"'"); n != 1 {
				t.Errorf("%d sums are left, want that before its first change", n)
			}
			end, done := feed(t, s, end, all...)
			if done.Rows != 0 || done.Repeats != len(all) || traces(t, s, secret) != 0 {
				t.Errorf("read again: %+v", done)
			}
			next, _ = feed(t, s, end, all[len(all)-1], all[len(all)-2])
			check()
			must(t, s.ForgetGone(t.Context(), board, secret))
			if forgetAt(t, s, 25*time.Hour, knows{}); t.Failed() {
				t.Fatal(board)
			}
			check()
		}
	})
}

// TestForgottenInAFinalAlone: retention has left the final's places, which have another checksum then.
func TestForgottenInAFinalAlone(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		closedBoard(t, s, 0, h, "b")
		_, err := s.Retain(t.Context(), Keep{Default: time.Hour}, time.Now())
		must(t, err)
		if boards, err := s.BoardsOf(t.Context(), secret); err != nil || len(boards) != 1 || traces(t, s, secret) != 1 {
			t.Fatal(boards, err)
		}
		must(t, s.ForgetGone(t.Context(), "b", secret))
		forgetAt(t, s, 25*time.Hour, knows{})
		f, err := s.FinalOf(t.Context(), "b", 0, 9)
		must(t, err)
		sum := uint64(0)
		for _, e := range f.Top {
			sum += wire.Hash(e.Member, e.Score)
		}
		if traces(t, s, secret) != 0 || f.Sum != sum&wire.SumMask || !wire.Forgotten(f.Top[1].Member) {
			t.Errorf("%+v", f)
		}
	})
}

// A ledger forgets as soon as it leads: one that restarts more often than it looks does, too.
func TestForgetsAtItsStart(t *testing.T) {
	t.Parallel()
	s := newStore(t, testkit.Database(t, testkit.SQLKinds[0]))
	broker, topic := testkit.Kfake(t).Addr(), testkit.Name(t)
	testkit.CreateTopic(t, broker, topic, 1, nil)
	h := newHistory("b", 5)
	feed(t, s, 0, h.incr("a", 1), h.secrets(wire.OpIncr, 2), h.change(wire.OpForget, secret, 0, "f1"))
	_, err := s.db.ExecContext(t.Context(), "UPDATE rank_forget SET at = 1")
	must(t, err)
	l, err := New(Options{Store: s, Redis: has{}, Kafka: map[string]string{"bootstrap.servers": broker}, Topic: topic, Group: "g"})
	must(t, err)
	runLedger(t, l)
	testkit.Eventually(t, testTimeout, func() error {
		if n, err := tryCount(t, s, "rank_forget"); err != nil || n > 0 {
			return fmt.Errorf("%d are to be forgotten: %w", n, err)
		}
		return nil
	})
}

// TestForgettingStandsNoMore: of a forgetting that Redis has lost nothing is done until it comes again; two ledgers, one
// of which dies at any step, do it once.
func TestForgettingStandsNoMore(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		next, _ := feed(t, s, 0, h.incr("a", 1), h.secrets(wire.OpIncr, 2))
		now := h.clone()
		next, _ = feed(t, s, next, h.change(wire.OpForget, secret, 0, "f1"), h.incr("a", 2))
		now.run = 6
		next, _ = feed(t, s, next, now.incr("a", 2))
		if n := forgetAt(t, s, 49*time.Hour, has{}); n != 0 || traces(t, s, secret) == 0 {
			t.Errorf("%d forgotten", n)
		}
		feed(t, s, next, now.change(wire.OpForget, secret, 0, "f1"))
		done := make(chan int, 2)
		for range 2 {
			go func() {
				n, err := s.forgetDue(t.Context(), time.Now().Add(49*time.Hour), has{})
				if err != nil {
					t.Error(err)
				}
				done <- n
			}()
		}
		if n := <-done + <-done; n != 1 || traces(t, s, secret) != 0 {
			t.Errorf("%d forgotten", n)
		}
		wantWhole(t, s, "b")
		wantScores(t, s, now)
	})
}

// TestForgottenInAnyHistory: whatever a board has gone through, it is proved once a member is forgotten; and again when
// its records are read again, and when Redis comes back as it was before, where the log forgets the member again.
func TestForgottenInAnyHistory(t *testing.T) {
	seeds := uint64(20)
	if testkit.Full() {
		seeds = 40
	}
	both(t, func(t *testing.T, s *Store) {
		next := int64(0)
		for seed := range seeds {
			w := newWorld(seed)
			if w.live(); w.ambiguous() {
				continue
			}
			w.forgets()
			next = w.tell(t, s, next)
			for again := range 3 {
				forgetAt(t, s, 49*time.Hour, knows{})
				wantWhole(t, s, w.now.board)
				wantScores(t, s, w.now.history)
				if n := count(t, s, "rank_log WHERE member = 'm0' AND board = '"+string(w.now.board)+"'"); n != 0 {
					t.Errorf("%d rows have the id", n)
				}
				if t.Failed() {
					t.Fatalf("seed %d, %d", seed, again)
				}
				if again == 1 { // an older file
					w.now = w.earlier[w.IntN(len(w.earlier))].fork()
					if w.histories(w.now.seq) > 1 { // nothing tells any more which one goes on
						break
					}
					w.now.run = w.newRun()
					w.topic = nil
					w.begin()
					for _, c := range w.commands[w.now.at:] {
						w.apply(c)
					}
					w.now.at = len(w.commands)
					w.publish()
					w.name()
				}
				next = w.tell(t, s, next)
			}
		}
	})
}

// histories counts the runs that have been told of with a change at a seq.
func (w *world) histories(seq uint64) int {
	runs := make(map[uint64]bool)
	for _, u := range w.topic {
		if u.Run != 0 && u.Seq == seq {
			runs[u.Run] = true
		}
	}
	return len(runs)
}

// forgets has a member forgotten, and the others go on.
func (w *world) forgets() {
	c := command{op: wire.OpForget, member: "m0", order: "forget/1"}
	w.commands = append(w.commands, c)
	w.apply(c)
	for i := range 3 {
		c := command{op: wire.OpIncr, member: "m1", number: float64(i), order: fmt.Sprint("behind", i)}
		w.commands = append(w.commands, c)
		w.apply(c)
	}
	w.now.at = len(w.commands)
	w.publish()
	w.name()
}
