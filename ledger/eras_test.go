package ledger

import (
	"context"
	"testing"
	"time"

	"rankcache"
	"rankcache/wire"
)

const serverA, serverB, serverC, serverD = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc", "dddddddddddddddd"

// on tells on which server changes were found.
func on(era string, updates ...*wire.LedgerUpdate) []*wire.LedgerUpdate {
	for _, u := range updates {
		u.Era = era
	}
	return updates
}

// name has a writer name the masters.
func name(t *testing.T, s *Store, first int64, eras ...string) int64 {
	t.Helper()
	b := NewBatch("topic")
	b.AddEras(eras, 0, first, first)
	if _, err := s.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return first + 1
}

// The address of Redis leads to another server and back, and the first one was neither demoted nor restarted: its run,
// which is the lower one, goes on.
func TestRedisComesBack(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		next := name(t, s, 0, serverA)
		next, _ = feed(t, s, next, on(serverA, h.incr("a", 1), h.incr("b", 2), h.incr("a", 4))...)
		other := h.clone()
		other.run = 6
		next = name(t, s, next, serverB)
		there := on(serverB, other.incr("a", 8), other.incr("c", 16))
		next, _ = feed(t, s, next, there...)
		wantProved(t, s, []*history{other})
		next = name(t, s, next, serverA)
		next, _ = feed(t, s, next, on(serverA, h.incr("b", 32))...)
		next, _ = feed(t, s, next, on(serverA, h.again(there)...)...)
		next, _ = feed(t, s, next, on(serverA, h.incr("b", 64))...)
		wantProved(t, s, []*history{h})
		judged(t, s, 0)
		settled(t, s, h, true)
		// Once more by way of two others, and with a record of one of them that comes late.
		third := other.clone()
		third.run = 7
		next = name(t, s, next, serverC)
		next, _ = feed(t, s, next, on(serverC, third.incr("a", 128))...)
		next = name(t, s, next, serverA)
		next, _ = feed(t, s, next, on(serverB, other.incr("a", 256))...)
		wantProved(t, s, []*history{h})
		name(t, s, next, serverB)
		wantProved(t, s, []*history{other})
	})
}

// Nobody writes after the return, and the board is what it was.
func TestRedisComesBackInSilence(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		next := name(t, s, 0, serverA)
		next, _ = feed(t, s, next, on(serverA, h.incr("a", 1), h.incr("b", 2))...)
		other := h.clone()
		other.run = 6
		mine := on(serverA, h.incr("a", 8), h.incr("c", 16))
		next, _ = feed(t, s, next, mine...)
		next = name(t, s, next, serverB)
		next, _ = feed(t, s, next, on(serverB, other.again(mine)...)...)
		wantProved(t, s, []*history{other})
		next = name(t, s, next, serverA)
		wantProved(t, s, []*history{h})
		// A server of which nobody has told a change of the board: what stood before stays, until a repeat tells that it has the other one.
		next = name(t, s, next, serverB)
		next = name(t, s, next, serverC)
		wantProved(t, s, []*history{other})
		again := *mine[1]
		feed(t, s, next, on(serverC, &again)...)
		wantProved(t, s, []*history{h})
	})
}

// After a failover that loses nothing an order is repeated that was applied two runs ago, and nobody writes: the server has what led to
// the head, and that tells nothing of the head.
func TestRepeatOfWhatLedToTheHead(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		next := name(t, s, 0, serverA)
		first := on(serverA, h.incr("a", 1))
		next, _ = feed(t, s, next, first...)
		h.run = 6
		next = name(t, s, next, serverB)
		next, _ = feed(t, s, next, on(serverB, h.incr("a", 2), h.incr("b", 4))...)
		next = name(t, s, next, serverC)
		again := *first[0]
		again.Past = true
		next, _ = feed(t, s, next, on(serverC, &again)...)
		wantProved(t, s, []*history{h})
		settled(t, s, h, true)
		// Nor does one of a life before it was deleted, whose order ids a rebuild has brought back.
		anew := newHistory("b", 7)
		next, _ = feed(t, s, next, on(serverC, anew.incr("c", 8))...)
		next = name(t, s, next, serverD)
		again = *first[0]
		again.Past = true
		feed(t, s, next, on(serverD, &again)...)
		wantProved(t, s, []*history{anew})
	})
}

// isOn is a Redis that has a board at a state, on a server.
type isOn struct {
	knows
	rankcache.State
	era string
}

func (r isOn) Home(context.Context, rankcache.BoardID) (rankcache.State, string, error) {
	return r.State, r.era, nil
}

// at is the state of a board in a run.
func (h *history) at(run uint64) rankcache.State {
	return rankcache.State{Run: run, Seq: h.seq, Sum: h.sum, HasSum: true}
}

// frozen writes what a ledger of before version 12 made of a board whose address led to another server and back: what came
// after the return is set aside, and declared lost.
func frozen(t *testing.T, s *Store) (h *history, next int64) {
	t.Helper()
	h = newHistory("b", 5)
	next, _ = feed(t, s, 0, h.incr("a", 1), h.incr("b", 2), h.incr("a", 4))
	other := h.clone()
	other.run = 6
	there := []*wire.LedgerUpdate{other.incr("a", 8), other.incr("c", 16), other.incr("c", 3)}
	next, _ = feed(t, s, next, there...)
	next, _ = feed(t, s, next, h.incr("b", 32), h.incr("a", 64))
	next, _ = feed(t, s, next, h.again(there)...)
	next, _ = feed(t, s, next, h.incr("b", 128))
	_, err := s.db.ExecContext(t.Context(), "UPDATE rank_board SET part = -1")
	must(t, err)
	judged(t, s, time.Hour)
	if p, err := s.Prove(t.Context(), "b"); err != nil || p.State.Run != 6 || p.State.Seq != 6 {
		t.Fatalf("%+v, %v: want the other server's history", p, err)
	}
	if n := count(t, s, "rank_lost WHERE state = 2"); n != 3 {
		t.Fatalf("%d changes are declared lost, want 3", n)
	}
	return h, next
}

// A board that an older ledger has frozen is whole once Redis is asked where it is, also if nobody writes to it, and whether or not its
// server was restarted since.
func TestFrozenBoardIsLocated(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h, next := frozen(t, s)
		for _, era := range []string{serverA, serverC} { // nobody has named the first, nor the second now
			must(t, s.Locate(t.Context(), "b", isOn{State: h.at(5), era: era}))
			next = name(t, s, next, serverB)
		}
		settled(t, s, h, false)
		next = name(t, s, next, serverC)
		must(t, s.Locate(t.Context(), "b", isOn{State: h.at(4), era: serverC})) // which the ledger does not have
		settled(t, s, h, false)
		must(t, s.Locate(t.Context(), "b", isOn{State: h.at(5), era: serverC}))
		wantProved(t, s, []*history{h})
		judged(t, s, 0)
		settled(t, s, h, true)
		if n := count(t, s, "rank_lost WHERE state <> 1"); n != 0 {
			t.Errorf("%d changes are set aside or lost, want none", n)
		}
		feed(t, s, next, on(serverC, h.incr("a", 256))...)
		wantProved(t, s, []*history{h})
	})
}

// One to which somebody writes is whole at the first change of which its writer tells where it is.
func TestFrozenBoardIsWritten(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h, next := frozen(t, s)
		next = name(t, s, next, serverA)
		feed(t, s, next, on(serverA, h.incr("a", 256))...)
		wantProved(t, s, []*history{h})
		judged(t, s, 0)
		settled(t, s, h, true)
	})
}

// The name of a former master comes late, as its writer hung, and the board is not changed on the next one, where a repeat has begun a
// run of it without a change.
func TestNamedLate(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		next := name(t, s, 0, serverA)
		next, _ = feed(t, s, next, on(serverA, h.incr("a", 1))...)
		h.run = 6
		next = name(t, s, next, serverB)
		next, _ = feed(t, s, next, on(serverB, h.incr("a", 2))...)
		for run, era := range map[uint64]string{7: serverC, 6: serverD} {
			next = name(t, s, next, serverA) // late
			next = name(t, s, next, era)
			settled(t, s, h, false)
			must(t, s.Locate(t.Context(), "b", isOn{State: h.at(run), era: era}))
			wantProved(t, s, []*history{h})
			settled(t, s, h, true)
		}
	})
}
