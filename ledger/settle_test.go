package ledger

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// failedOver is a board whose run began in the middle of its history, and that a failover has taken back to
// before that run: what is in lost is not in Redis any more.
func failedOver() (before, lost, after []*wire.LedgerUpdate, now *history) {
	h := newHistory("b", 5)
	before = append(before, h.incr("a", 1), h.incr("b", 2), h.incr("a", 3))
	now = h.clone()
	lost = append(lost, h.incr("b", 10), h.incr("c", 20))
	h.run = 6 // adopted, or rebuilt
	lost = append(lost, h.incr("a", 30), h.change(wire.OpDelete, "b", 0, "gone"), h.incr("c", 40))
	now.run = 7
	after = append(after, now.incr("d", 5))
	return before, lost, after, now
}

// again applies changes once more, in another history.
func (h *history) again(lost []*wire.LedgerUpdate) (all []*wire.LedgerUpdate) {
	for _, u := range lost {
		number := u.Delta
		if u.Op == wire.OpSet {
			number = u.Score
		}
		all = append(all, h.change(u.Op, u.Member, number, u.OrderID))
	}
	return all
}

// A run that began in the middle and is lost holds nothing up; what was lost with it and comes again stands.
func TestRunThatBeganInTheMiddleIsLost(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		before, lost, after, now := failedOver()
		next, _ := feed(t, s, 0, append(before, lost...)...)
		next, done := feed(t, s, next, after...)
		if want := (Result{Rows: 1, Aside: len(lost)}); done != want {
			t.Errorf("%+v, want %+v", done, want)
		}
		wantProved(t, s, []*history{now})
		if p, err := s.Prove(t.Context(), "b"); err != nil || p.Proved || p.Aside != len(lost) || !strings.Contains(p.Why(), "set aside") {
			t.Errorf("%+v, %v: want it not proved", p, err)
		}
		settled(t, s, now, false)
		next, _ = feed(t, s, next, now.again(lost)...)
		wantProved(t, s, []*history{now})
		wantJudged(t, s, 0, "incr b 1 12 -1", "incr c 1 20 -1", "incr a 1 34 -1", "delete b 1 -1 -1", "incr c 1 60 -1")
		settled(t, s, now, true)
		// Records that are read again change nothing.
		if _, done := feed(t, s, next, append(before, lost...)...); done != (Result{Repeats: len(before) + len(lost)}) {
			t.Errorf("again: %+v", done)
		}
		wantProved(t, s, []*history{now})
	})
}

func settled(t *testing.T, s *Store, h *history, want bool) {
	t.Helper()
	if got, err := s.Settled(t.Context(), h.board, rankcache.State{Run: h.run, Seq: h.seq, Sum: h.sum, HasSum: true}); err != nil || got != want {
		t.Errorf("settled %v, %v, want %v", got, err, want)
	}
}

// The address of Redis led to another server and back: both have applied the same commands, the last ones in runs of
// their own, and that of the one that is Redis again is the lower one.
func TestSettledInAnotherRun(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		next, _ := feed(t, s, 0, h.incr("a", 1), h.incr("b", 2))
		other := h.clone()
		other.run = 6
		mine := []*wire.LedgerUpdate{h.incr("a", 10), h.incr("c", 20)}
		next, _ = feed(t, s, next, mine...)
		next, _ = feed(t, s, next, other.again(mine[:1])...)
		settled(t, s, h, false)
		feed(t, s, next, other.again(mine[1:])...)
		judged(t, s, 0)
		settled(t, s, h, true)
		h.sum++
		settled(t, s, h, false)
	})
}

// A board whose keys were deleted by hand has what came since, however much of it is in a batch. What it had is
// known to be missing.
func TestDeletedLifeStaysDeleted(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h, anew := newHistory("b", 5), newHistory("b", 9)
		var updates []*wire.LedgerUpdate
		for range 19 {
			updates = append(updates, h.incr("a", 1))
		}
		next, _ := feed(t, s, 0, updates...)
		updates = nil
		for range 10 {
			updates = append(updates, anew.incr("a", 1))
		}
		if _, done := feed(t, s, next, updates...); done != (Result{Rows: 10, Reborn: 1}) {
			t.Errorf("%+v", done)
		}
		wantProved(t, s, []*history{anew})
		wantJudged(t, s, 24*time.Hour)
		p, err := s.Prove(t.Context(), "b")
		if want := (&Earlier{5, 19, 1, 1700000000019}); err != nil || !cmp.Equal(p.Earlier, want) {
			t.Errorf("earlier %+v, %v, want %+v", p.Earlier, err, want)
		}
		// A failover that undoes the deletion.
		h.run = 12
		lost := []*wire.LedgerUpdate{anew.incr("a", 1)}
		feed(t, s, next+10, lost[0], h.incr("b", 1))
		wantProved(t, s, []*history{h})
		if n := count(t, s, "rank_lost"); n != 11 {
			t.Errorf("%d changes are set aside, want all 11 of the life that is undone", n)
		}
	})
}

// A trim goes with the change that caused it: its member is back, and it is not reported.
func TestTrimsGoWithTheirCause(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		next, _ := feed(t, s, 0, h.incr("a", 1), h.incr("b", 2))
		replica := h.clone()
		replica.run = 6
		next, _ = feed(t, s, next, h.change(wire.OpSet, "c", 3, "o"), h.change(wire.OpTrim, "a", 0, "o"))
		feed(t, s, next, replica.incr("b", 1))
		wantProved(t, s, []*history{replica})
		wantJudged(t, s, time.Hour, "set c 2 3 -1", "trim a 1 -1 -1")
	})
}

// A trimmed member keeps its score in Redis, and goes on from there, also as the first change of a run.
func TestTrimmedMemberGoesOn(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		next, _ := feed(t, s, 0, h.incr("a", 3), h.incr("b", 5), h.change(wire.OpTrim, "a", 0, "o"))
		h.run = 6
		back := h.change(wire.OpSet, "a", 5, "back")
		back.Op, back.Delta = wire.OpIncr, 2
		feed(t, s, next, back, h.incr("b", 1))
		wantProved(t, s, []*history{h})
	})
}

// A history that was taken for lost is the one that goes on: two servers were taken for one, or an old file was read
// after all keys were gone. The checksum tells which of them a run continues.
func TestLostHistoryThatGoesOn(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		next, _ := feed(t, s, 0, h.incr("a", 1), h.incr("b", 2))
		other := h.clone()
		other.run = 6
		mine := []*wire.LedgerUpdate{h.incr("a", 10), h.incr("c", 20), h.incr("a", 30)}
		next, _ = feed(t, s, next, mine...)
		next, _ = feed(t, s, next, other.incr("d", 40), other.again(mine[:1])[0], other.incr("e", 50), other.incr("e", 60))
		wantProved(t, s, []*history{other})
		h.run = 7
		next, done := feed(t, s, next, h.incr("b", 70))
		if want := (Result{Rows: 4, Aside: 4}); done != want {
			t.Errorf("%+v, want %+v: three that are back, and one new", done, want)
		}
		wantProved(t, s, []*history{h})
		anew := newHistory("b", 8)
		next, _ = feed(t, s, next, anew.incr("x", 1), anew.incr("y", 2))
		wantProved(t, s, []*history{anew})
		h.run = 9
		feed(t, s, next, h.incr("a", 80))
		wantProved(t, s, []*history{h})
	})
}

// An order id that was used again, after its order life, is the later change; a row is missing.
func TestOneOrderAtTwoPlaces(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		first, second := h.change(wire.OpIncr, "a", 1, "o"), h.change(wire.OpIncr, "a", 1, "o")
		next, _ := feed(t, s, 0, first)
		if _, done := feed(t, s, next, second, h.incr("b", 1)); done != (Result{Rows: 2, Aside: 1}) {
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
		replica.run = 6
		next, _ = feed(t, s, next, h.incr("a", 4))
		feed(t, s, next, replica.incr("b", 1))
		if p, err := s.Prove(t.Context(), "b"); err != nil || !p.Incomplete || p.Proved {
			t.Errorf("%+v, %v: want it incomplete", p, err)
		}
	})
}

// Tables of a ledger that applied again what was lost: what was pending then is lost unless it has come again, and the
// next failover finds the runs that are there.
func TestTablesOfEarlierLosses(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			s, err := Open(testkit.Database(t, kind), nil)
			must(t, err)
			t.Cleanup(func() { s.Close() })
			must(t, migrateTo(t, s, 5))
			h := newHistory("b", 5)
			var all []*wire.LedgerUpdate
			all = append(all, h.incr("a", 1), h.incr("b", 2))
			h.run = 6
			all = append(all, h.incr("a", 4), h.incr("b", 8))
			replica := h.clone()
			all = append(all, h.incr("a", 16))
			must(t, s.in(t.Context(), sql.LevelReadCommitted, func(tx *transaction) error {
				runs := make(runsOf)
				for _, u := range all {
					runs.add(u)
				}
				runs.relate("b", nil)
				cols := slices.DeleteFunc(boardColumns(runs["b"]), func(c column) bool {
					return c.name == "after_run" || c.name == "end_seq" || c.name == "eras" || c.name == "part"
				})
				_, board := s.d.insert("rank_board", "", cols...).exec(tx)
				changes := func(of []*wire.LedgerUpdate) []column {
					return slices.DeleteFunc(updateColumns(bare(of)), func(c column) bool { return c.name == "by_groups" })
				}
				_, log := s.d.insert("rank_log", "", changes(all)...).exec(tx)
				_, score := s.d.insert("rank_score", "", scoreColumns(bare(all))...).exec(tx)
				lost := []*wire.LedgerUpdate{all[0], newHistory("b", 4).incr("z", 1)}
				_, aside := s.d.insert("rank_lost", "", append(changes(lost), ints("lost_at", []int64{time.Now().UnixMilli(), 1}), ints("posted_at", []int64{1, 1}))...).exec(tx)
				return errors.Join(board, log, score, aside)
			}))
			must(t, s.Migrate(t.Context()))
			must(t, s.Begin(t.Context(), "topic", 0, 0))
			wantProved(t, s, []*history{h})
			wantJudged(t, s, 0, "incr z 2 1 -1", "incr a 1 1 -1")
			replica.run = 7
			feed(t, s, 0, replica.incr("c", 1))
			wantProved(t, s, []*history{replica})
			wantJudged(t, s, 0, "incr z 2 1 -1", "incr a 1 1 -1", "incr a 0 21 -1")
		})
	}
}

// An order of a life that was deleted with its order ids is repeated in the next one, where it is a change like any other: the ledger
// has it once, there, and takes nothing for lost. Where the order ids were brought back it is a repeat, and changes nothing.
func TestOrderOfAnEarlierLife(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		first := []*wire.LedgerUpdate{h.incr("a", 1), h.incr("b", 2), h.incr("a", 4)}
		next, _ := feed(t, s, 0, first...)
		anew := newHistory("b", 6)
		again := anew.again(first[:1])
		next, done := feed(t, s, next, append(again, anew.incr("b", 8))...)
		if want := (Result{Rows: 2, Aside: 1, Reborn: 1}); done != want {
			t.Errorf("%+v, want %+v", done, want)
		}
		wantJudged(t, s, time.Hour, "incr a 1 1 -1")
		wantProved(t, s, []*history{anew})
		settled(t, s, anew, true)
		for _, want := range []float64{1, 2} { // of the orders of both lives
			u := first[int(want)-1]
			key := OrderKey{"b", u.Member, u.OrderID}
			if applied, aside, err := s.Ordered(t.Context(), []OrderKey{key}); err != nil || len(applied[key]) != 1 || len(aside[key]) != 0 || applied[key][0].Delta != want {
				t.Errorf("order %s: %v, %v, %v: want it once", u.OrderID, applied, aside, err)
			}
		}
		told := *first[1]
		told.Past = true
		feed(t, s, next, &told)
		wantProved(t, s, []*history{anew})
		settled(t, s, anew, true)
	})
}
