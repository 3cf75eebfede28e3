package rebuild

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/testkit"
)

// both runs a test with each kind of database.
func both(t *testing.T, test func(t *testing.T, kind string)) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) { test(t, kind) })
	}
}

// A board that was changed by hand, and one that is gone, get the members of the ledger and
// know the order ids that were applied; then the writer goes on.
func TestBoardIsAsItWas(t *testing.T) {
	both(t, func(t *testing.T, kind string) {
		for name, class := range map[string]string{"plain": "", "ties": ", ties: first, score: integer", "trim": ", trim: 8, ops: [incr]"} {
			t.Run(name, func(t *testing.T) { asItWas(t, newFixture(t, kind, class)) })
		}
	})
}

func asItWas(t *testing.T, f *fixture) {
	f.fill(t)
	want, before := f.scores(t), f.state(t)
	board := f.opts.Names.BoardKey(f.board)
	must(t, f.redis.ZAdd(t.Context(), board, redis.Z{Member: "m1", Score: 1e6}, redis.Z{Member: "stranger", Score: 5}).Err())
	must(t, f.redis.ZRem(t.Context(), board, "m7").Err())
	done, err := f.Rebuild(t.Context(), f.board)
	must(t, err)
	equal(t, "before, members, orders", []any{done.Before, done.Members, done.Orders}, []any{before, len(want), len(f.orders)})
	equal(t, "after", done.After, f.state(t))
	f.wantRebuilt(t, want, before)

	before = f.state(t)
	must(t, f.redis.Del(t.Context(), f.keys(t)...).Err())
	done, err = f.Rebuild(t.Context(), f.board)
	must(t, err)
	equal(t, "before, of a board that is gone", done.Before.Run, uint64(0))
	f.wantRebuilt(t, want, before)
	f.give(t, "next", "m1", `"op":"incr","delta":3`)
	if got := f.state(t).Seq; got != before.Seq+1 {
		t.Errorf("the next change has seq %d, want %d", got, before.Seq+1)
	}
	if f.file.Class("paid").Trim == 0 {
		f.wantProved(t)
	}
}
