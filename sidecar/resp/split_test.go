package resp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
)

// splitBoard has the members of the split board gift:7 in four shards that are open here, and in Redis as the sorted set that it returns.
func (e *env) splitBoard(n int) (single string) {
	e.t.Helper()
	e.split = fixture.NewSplit("gift:7", 4)
	e.tiers.Store(fixture.Tiers("classes: [{name: gift, board: \"gift:{zone}\", period: none, shards: 4}]\nboards: [{match: \"gift:7\", mode: super-hot}]\n")())
	single = testkit.Name(e.t)
	rows := make(map[string]float64)
	pipe := e.client.Pipeline()
	for i := range n {
		m, score := fixture.Member(i), float64(i%9-3)
		rows[m] = score
		pipe.ZAdd(e.t.Context(), single, redis.Z{Score: score, Member: m})
	}
	if _, err := pipe.Exec(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
	e.split.Set(e.t, rows)
	for id, b := range e.split.Shards {
		e.boards.Store(id, b)
	}
	e.t.Cleanup(func() { e.client.Del(context.Background(), single) })
	return single
}

// someRead returns a read of KEY, some of whose rows are equal in score.
func someRead(r *rand.Rand) string {
	rank := func() int { return r.IntN(40) - 12 }
	scores := []string{"", " WITHSCORES"}[r.IntN(2)]
	bound := func() string {
		return []string{"", "("}[r.IntN(2)] + fmt.Sprint(r.IntN(12)-5)
	}
	return []string{
		fmt.Sprintf("ZREVRANGE KEY %d %d%s", rank(), rank(), scores), fmt.Sprintf("ZRANGE KEY %d %d%s", rank(), rank(), scores),
		fmt.Sprintf("ZRANGE KEY %d %d REV%s", rank(), rank(), scores), fmt.Sprintf("ZREVRANGE KEY 0 -1%s", scores),
		fmt.Sprintf("ZREVRANGEBYSCORE KEY %s %s%s", bound(), bound(), scores), fmt.Sprintf("ZRANGEBYSCORE KEY %s +inf LIMIT %d %d", bound(), r.IntN(30), r.IntN(30)),
		fmt.Sprintf("ZRANGE KEY %s inf BYSCORE LIMIT %d -1", bound(), r.IntN(3)), fmt.Sprintf("ZCOUNT KEY %s %s", bound(), bound()),
		fmt.Sprintf("ZREVRANK KEY %s", fixture.Member(r.IntN(330))), fmt.Sprintf("ZRANK KEY %s", fixture.Member(r.IntN(330))), fmt.Sprintf("ZSCORE KEY %s", fixture.Member(r.IntN(330))),
		fmt.Sprintf("ZMSCORE KEY %s none %s", fixture.Member(r.IntN(330)), fixture.Member(r.IntN(330))), "ZCARD KEY",
	}[r.IntN(13)]
}

// TestSplitRepliesAreRedis: replies about a split board, with equal scores everywhere, are those of Redis about one set of the same
// members: from memory, and while a shard is in Redis alone.
func TestSplitRepliesAreRedis(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Redis(t)).learned()
	single := e.splitBoard(300)
	r := seedOf(t)
	compare := func(c, redis *clientConn, n int) {
		t.Helper()
		for range n {
			command := someRead(r)
			want := redis.ask(strings.Fields(strings.ReplaceAll(command, "KEY", single))...)
			if got := c.ask(strings.Fields(strings.ReplaceAll(command, "KEY", "gift:7"))...); got != want {
				t.Fatalf("%s: got %.300q, want %.300q", command, got, want)
			}
		}
	}
	for _, proto := range []string{"2", "3"} {
		c, redis := e.dial(), dial(t, e.redis)
		c.ask("HELLO", proto)
		redis.ask("HELLO", proto)
		compare(c, redis, testkit.Sized(300, 5000))
	}
	if e.split.Calls.Load() > 0 || e.counted(zRevRange, sourceLocal) == 0 {
		t.Error("Redis was asked for shards that are open here")
	}
	e.boards.Delete(rankcache.BoardID("gift:7.s1"))
	c, redis := e.dial(), dial(t, e.redis)
	testkit.Eventually(t, 10*time.Second, func() error { // a page may be answered as it was some ms ago
		if c.ask("ZREVRANGE", "gift:7", "0", "1"); e.split.Calls.Load() == 0 {
			return fmt.Errorf("no call of Redis")
		}
		return nil
	})
	compare(c, redis, testkit.Sized(100, 1000))
}

// TestSplitRefused: what is not answered about a split board gets an error, and never reaches Redis, which has no such key.
func TestSplitRefused(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Redis(t)).learned()
	single := e.splitBoard(600)
	c := e.dial()
	c.want(dial(t, e.redis).ask("ZREVRANGE", single, "-7", "-1"), "ZREVRANGE", "gift:7", "-7", "-1") // beyond the first 500, of open boards
	const prefix = "-ERR RANKCACHE board is split into shards"
	refused := func(command string) {
		t.Helper()
		if got := c.ask(strings.Fields(command)...); !strings.HasPrefix(got, prefix) {
			t.Errorf("%s: %q", command, got)
		}
	}
	for _, command := range []string{"ZREVRANGE gift:7 0 -1", "ZREVRANGE gift:7 0 500", "ZRANGEBYSCORE gift:7 -inf inf", "ZRANGEBYSCORE gift:7 -inf inf LIMIT 490 11",
		"EVAL_RO return#1 1 gift:7", "ZUNION 2 none gift:7", "ZINTERCARD 1 gift:7", "ZRANGESTORE gift:new gift:7 0 -1", "ZUNIONSTORE gift:new 1 gift:7", "ZMPOP 1 gift:7 MAX", "BZPOPMAX gift:7 0.01",
		"EXISTS gift:7", "DEL gift:7", "RENAME gift:7 gift:new", "SORT gift:7 BY nosort", "ZRANGE gift:7 - + BYLEX", "ZREVRANGE gift:7 0 x", "ZSCAN gift:7 0", "ZADD gift:7 1 m", "ZPOPMAX gift:7", "EVAL return#1 1 gift:7"} {
		refused(command)
	}
	c.want(":600\r\n", "ZCARD", "gift:7")
	for _, command := range []string{"ZADD KEY:2 1 gift:7", "SET KEY:3 gift:7", "DEL KEY:2 KEY:3", "WATCH gift:7", "UNWATCH"} { // it is no key there
		if got := c.ask(strings.Fields(strings.ReplaceAll(command, "KEY", single))...); strings.HasPrefix(got, "-") {
			t.Errorf("%s: %q", command, got)
		}
	}
	c.want("+OK\r\n", "MULTI")
	refused("ZCARD gift:7")
	if got := c.ask("EXEC"); !strings.HasPrefix(got, "-EXECABORT") {
		t.Errorf("EXEC: %q", got)
	}
	if n := e.client.Exists(t.Context(), "gift:7").Val(); n != 0 {
		t.Error("Redis has a set of the whole board's name")
	}

	e.boards.Delete(rankcache.BoardID("gift:7.s2"))
	e.split.Away.Store(true)
	for _, command := range []string{"ZREVRANGE gift:7 0 2", "ZREVRANK gift:7 " + fixture.Member(5), "ZCARD gift:7", "ZCOUNT gift:7 0 1"} {
		testkit.Eventually(t, 10*time.Second, func() error {
			if got := c.ask(strings.Fields(command)...); got != splitAway {
				return fmt.Errorf("%s without a shard: %q", command, got)
			}
			return nil
		})
	}
	e.tiers.Store(fixture.Tiers("classes: [{name: gift, board: \"gift:{zone}\", period: none, shards: 4}]\nboards: [{match: \"gift:7\", mode: blocked}]\n")())
	c.want("-ERR RANKCACHE board is blocked by the operator\r\n", "ZCARD", "gift:7")
}

// TestSplitOwnWrites: behind a script, which may have written to any shard, the board is read from Redis.
func TestSplitOwnWrites(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Redis(t)).learned()
	e.splitBoard(20)
	c := e.dial()
	c.want(":20\r\n", "ZCARD", "gift:7")
	c.want(":1\r\n", "EVAL", "return 1", "0")
	before := e.split.Calls.Load()
	c.want(":20\r\n", "ZCARD", "gift:7")
	if e.split.Calls.Load() == before {
		t.Error("a copy that may be older than the script was read")
	}
}

// growing is a board that gets a member before each read.
type growing struct {
	*fixture.Split
	t     *testing.T
	reads int
}

func (g *growing) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	if g.reads++; g.reads > 50 {
		as[0].Fail(rankcache.ErrUnavailable)
		return
	}
	g.Set(g.t, map[string]float64{fixture.Member(g.reads): float64(g.reads)})
	g.Whole.Read(ctx, qs, as)
}

// TestSplitRanksFromTheEnd: rows that are counted from the end of a board that grows with each read of it are read a few times, and
// are those of one of the moments meanwhile.
func TestSplitRanksFromTheEnd(t *testing.T) {
	t.Parallel()
	for _, q := range []form{{start: -2, stop: -1}, {start: 0, stop: -1}, {start: -40, stop: -2}} {
		g := &growing{Split: fixture.NewSplit("gift:7", 4), t: t}
		g.Set(t, map[string]float64{"a": 0.1, "b": 0.2, "c": 0.3})
		q.verb, q.split, q.board, q.order = zRange, true, "gift:7", rankcache.Ascending
		var l lookup
		if l.read(g, &q, 0); l.as[0].Err != nil || len(l.as[0].Entries) == 0 || g.reads > 5 {
			t.Errorf("ranks %d to %d: %d reads, %d rows, %v", q.start, q.stop, g.reads, len(l.as[0].Entries), l.as[0].Err)
		}
	}
}
