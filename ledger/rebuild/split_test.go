package rebuild

import (
	"testing"

	"rankcache"
	"rankcache/class"
	"rankcache/ledger"
	"rankcache/wire"
)

// TestShardsComeBack: what Redis loses of split boards comes back shard by shard, but those of a board that has a final.
func TestShardsComeBack(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	shard := func(zone string) (of *fixture, whole rankcache.BoardID) {
		of = l.of("split", zone)
		whole = of.board
		of.board = class.ShardID(whole, class.ShardOf("m1", 2))
		of.give(t, "o1", "m1", `"op":"incr","delta":5`)
		of.settle(t)
		return of, whole
	}
	running, _ := shard("running")
	ended, whole := shard("ended")
	must(t, l.opts.Store.SaveFinal(t.Context(), &ledger.Final{Final: wire.Final{Board: whole, Class: "split", State: ended.state(t)}}))
	life := l.life(t)
	must(t, l.redis.FlushAll(t.Context()).Err())
	l.awaitWhole(t, life)
	equal(t, "running", running.scores(t), map[string]float64{"m1": 5})
	if n := l.redis.Exists(t.Context(), l.opts.Names.BoardKey(ended.board), l.opts.Names.MetaKey(ended.board)).Val(); n != 0 {
		t.Error("a shard of a board with a final is there again")
	}
}
