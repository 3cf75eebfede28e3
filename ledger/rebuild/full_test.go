package rebuild

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/wire"
)

// A board of 210,000 members with 1,000,000 orders in their life. How long it takes is logged.
func TestRebuildInFullSize(t *testing.T) {
	if !testkit.Full() || testkit.Race {
		t.Skip("a million rows take a minute: RANKCACHE_FULL=1 has them, without the race detector")
	}
	const members, orders = 210_000, 1_000_000
	both(t, func(t *testing.T, kind string) {
		f := newIdle(t, kind, single).of("plain", "7")
		begun := time.Now()
		scores, last := f.fillLedger(t, members, orders)
		t.Logf("%d rows written in %v", orders, time.Since(begun))
		for _, what := range []string{"gone", "there"} {
			done, err := f.Rebuild(t.Context(), f.board)
			must(t, err)
			t.Logf("%s, board %s: %d members and %d order ids in %v, writers waited %v", kind, what, done.Members, done.Orders, done.Took, done.Held)
			equal(t, "members, orders, seq", []any{done.Members, done.Orders, done.After.Seq}, []any{members, orders, last.Seq})
			equal(t, "sum", done.After.Sum, last.Sum)
		}
		if got := f.redis.ZCard(t.Context(), f.opts.Names.BoardKey(f.board)).Val(); got != int64(len(scores)) {
			t.Errorf("%d members in Redis", got)
		}
		for range 100 {
			m := fmt.Sprint("m", rand.IntN(members))
			if got := f.redis.ZScore(t.Context(), f.opts.Names.BoardKey(f.board), m).Val(); got != scores[m] {
				t.Errorf("%s has %v, want %v", m, got, scores[m])
			}
		}
	})
}

// fillLedger writes increments of one run, and returns the scores and the last change.
func (f *fixture) fillLedger(t *testing.T, members, orders int) (scores map[string]float64, last *wire.LedgerUpdate) {
	scores = make(map[string]float64, members)
	run, sum, next := newRun(uint64(f.at)), uint64(0), int64(0)
	must(t, f.opts.Store.Begin(t.Context(), "test", 0, 0))
	for batch := ledger.NewBatch("test"); int(next) < orders; {
		m := fmt.Sprint("m", int(next)%members)
		before, there := scores[m]
		if there {
			sum -= wire.Hash(m, before)
		}
		scores[m] = before + 1
		sum = (sum + wire.Hash(m, before+1)) & wire.SumMask
		last = &wire.LedgerUpdate{Update: wire.Update{Board: f.board, Member: m, Op: wire.OpIncr, Delta: 1, Score: before + 1, Run: run, Seq: uint64(next) + 1, Sum: sum, HasSum: true,
			Members: len(scores), OrderID: fmt.Sprintf("order-%08d", next), At: f.at}, Class: "plain", Dims: map[string]string{"zone": "7"}}
		if next++; !batch.Add(last, 0, next-1-int64(batch.Len()), next-1) {
			t.Fatal("not added")
		}
		if batch.Len() == ledger.MaxBatch || int(next) == orders {
			_, err := f.opts.Store.Apply(t.Context(), batch)
			must(t, err)
			batch = ledger.NewBatch("test")
		}
	}
	return scores, last
}
