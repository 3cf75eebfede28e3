package sidecar

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/testkit/fixture"
)

// oldShards is a Redis that has the shards of one board, by the ids of another, as long as it has them.
type oldShards struct {
	w    *splitWorld
	gone bool
}

func (o *oldShards) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	for i, q := range qs {
		_, shard, is := class.CutShard(q.Board)
		if !is || o.gone {
			as[i].Begin(&q, rankcache.SourceRedis, rankcache.Stamp{}, as[i].At)
			continue
		}
		q.Board = class.ShardID(splitID, shard)
		o.w.Split.Read(ctx, []rankcache.Query{q}, as[i:i+1])
	}
}

// TestSplitFinal: a split board that is not kept any more is answered from its final, which is of all shards; while it has none, from the
// shards that Redis still has, and without both it is gone. Without the ledger it is not answered.
func TestSplitFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const old = rankcache.BoardID("wide:19990101")
		w := newSplitWorld(t, 4)
		w.Set(t, map[string]float64{"a": 1, "b": 2, "c": 3})
		unknown := fmt.Errorf("%w: %w", rankcache.ErrUnavailable, rankcache.ErrNoBoard)
		ask := func(redisHas bool, ledgerHas error) rankcache.Answer {
			ledger := finalsOnly{fixture.New().Origin}
			ledger.N.Store(30)
			for shard := range 4 { // the final is that of the whole board
				ledger.FailBoard(class.ShardID(old, shard), unknown)
			}
			if ledgerHas != nil {
				ledger.FailBoard(old, ledgerHas)
			}
			r := readerOf(t, Config{Tiers: fixture.Tiers("classes:\n- {name: wide, board: \"wide:{period}\", period: day, ledger: true, shards: 4}\n"), Origin: &oldShards{w, !redisHas}, Ledger: ledger})
			return rankcache.One(t.Context(), r, rankcache.Query{Board: old, Limit: 2, Members: []string{"a"}})
		}
		for _, redisHas := range []bool{true, false} {
			if a := ask(redisHas, nil); a.Err != nil || a.Members != 30 || a.Source != rankcache.SourceFinal || len(a.Entries) != 2 || a.Shards != nil {
				t.Errorf("with its final: %d members, %v, %v", a.Members, a.Source, a.Err)
			}
			if a := ask(redisHas, errAway); !errors.Is(a.Err, rankcache.ErrUnavailable) {
				t.Errorf("without the ledger: %d members, %v", a.Members, a.Err)
			}
		}
		if a := ask(true, unknown); a.Err != nil || a.Members != 3 || a.Source != rankcache.SourceRedis || a.Own[0].Rank != 3 || len(a.Shards) != 4 {
			t.Errorf("without a final: %d members, %v, %v", a.Members, a.Source, a.Err)
		}
		if a := ask(false, unknown); !errors.Is(a.Err, ErrGone) {
			t.Errorf("without both: %d members, %v", a.Members, a.Err)
		}
	})
}
