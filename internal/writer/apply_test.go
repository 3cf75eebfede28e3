package writer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// Redis forgets its scripts when it restarts or is told to; a batch goes
// through all the same.
func TestScriptFlush(t *testing.T) {
	h := quiet(t, nil)
	for i := range 3 {
		must(t, h.client.ScriptFlush(t.Context()).Err())
		equal(t, "seq", h.do1(t, h.order("incr", fmt.Sprint("o", i), "m", "delta", 1)).Update.Seq, uint64(i+1))
	}
}

func TestRedisAway(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	h := quiet(t, func(o *Options) { o.Redis = redisClient(t, server.Addr()) })
	h.do1(t, h.order("incr", "o1", "m", "delta", 1))
	must(t, server.Stop())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := h.do(ctx, []byte(h.order("incr", "o2", "m", "delta", 1))); !errors.Is(err, rankcache.ErrUnavailable) {
		t.Fatal("error", err)
	}
	must(t, server.Restart(t.Context()))
	testkit.Eventually(t, patience, func() error {
		_, err := h.do(t.Context(), []byte(h.order("incr", "o2", "m", "delta", 1)))
		return err
	})
}

// A Redis that is full or may only read says so; that is waited for, not
// counted as a bad command.
func TestRedisRefusesToWrite(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	h := quiet(t, func(o *Options) { o.Redis = redisClient(t, server.Addr()) })
	must(t, h.client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	jobs := []*job{{Command: &Command{Board: "b", Member: "m", Op: wire.OpIncr, Number: 1, Order: "o"}}}
	if err := h.applier.apply(t.Context(), jobs); !errors.Is(err, rankcache.ErrUnavailable) || jobs[0].done {
		t.Fatal("error", err)
	}
	must(t, h.client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	must(t, h.applier.apply(t.Context(), jobs))
	equal(t, "seq", jobs[0].Update.Seq, uint64(1))
}

// A second attempt sends only what was not answered.
func TestApplyAgain(t *testing.T) {
	h := quiet(t, nil)
	jobs := []*job{{Command: &Command{Board: h.board, Member: "m", Op: wire.OpIncr, Number: 1, Order: "o"}}}
	must(t, h.applier.apply(t.Context(), jobs))
	must(t, h.applier.apply(t.Context(), jobs))
	equal(t, "outcome", []any{jobs[0].Update.Seq, jobs[0].Duplicate}, []any{uint64(1), false})
}
