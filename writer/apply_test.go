package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// Redis loses its scripts in a restart or SCRIPT FLUSH; a batch is applied anyway.
func TestScriptFlush(t *testing.T) {
	h := quiet(t, nil)
	for i := range 3 {
		must(t, h.client.ScriptFlush(t.Context()).Err())
		equal(t, "seq", h.do1(t, h.opCommand("incr", fmt.Sprint("o", i), "m", "delta", 1)).Update.Seq, uint64(i+1))
	}
}

func TestApplyDuringOutage(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	h := quiet(t, func(o *Options) { o.Redis = redisClient(t, server.Addr()) })
	h.do1(t, h.opCommand("incr", "o1", "m", "delta", 1))
	must(t, server.Stop())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := h.do(ctx, []byte(h.opCommand("incr", "o2", "m", "delta", 1))); !errors.Is(err, rankcache.ErrUnavailable) {
		t.Fatal("error", err)
	}
	must(t, server.Restart(t.Context()))
	testkit.Eventually(t, testTimeout, func() error {
		_, err := h.do(t.Context(), []byte(h.opCommand("incr", "o2", "m", "delta", 1)))
		return err
	})
}

// A Redis that is full or read-only is unavailable; the command is not refused.
func TestRedisRejectsWrites(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	h := quiet(t, func(o *Options) { o.Redis = redisClient(t, server.Addr()) })
	must(t, h.client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	jobs := []*job{{Command: &Command{Board: "b", Member: "m", Op: wire.OpIncr, Number: 1, OrderID: "o", At: h.at}}}
	if err := h.applier.apply(t.Context(), jobs); !errors.Is(err, rankcache.ErrUnavailable) || jobs[0].done {
		t.Fatal("error", err)
	}
	must(t, h.client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	must(t, h.applier.apply(t.Context(), jobs))
	equal(t, "seq", jobs[0].Update.Seq, uint64(1))
}

// A second attempt sends only jobs without a reply.
func TestApplySkipsDoneJobs(t *testing.T) {
	h := quiet(t, nil)
	jobs := []*job{{Command: &Command{Board: h.board, Member: "m", Op: wire.OpIncr, Number: 1, OrderID: "o", At: h.at}}}
	must(t, h.applier.apply(t.Context(), jobs))
	must(t, h.applier.apply(t.Context(), jobs))
	equal(t, "outcome", []any{jobs[0].Update.Seq, jobs[0].Duplicate}, []any{uint64(1), false})
}

// The writer publishes byte for byte the updates with which readers are tested.
func TestGoldenUpdates(t *testing.T) {
	golden, err := os.ReadFile("../wire/testdata/updates.golden")
	must(t, err)
	server := testkit.StartRedis(t, servers.RedisOptions{}) // the file fixes the board ids
	h := quiet(t, func(o *Options) { o.Redis = redisClient(t, server.Addr()) })
	checked := 0
	for line := range bytes.Lines(golden) {
		line = bytes.TrimSpace(line)
		var u wire.Update
		must(t, wire.DecodeUpdate(line, &u))
		if u.Run == 0 || !u.HasSum || u.Op == wire.OpTrim || u.Data != "" { // from other producers, of no command alone, or of a class with data
			continue
		}
		h.setState(t, &u)
		got := h.do1(t, string(line)) // an update decodes as its command, too
		equal(t, "update", string(wire.AppendUpdate(nil, &got.Update)), string(line))
		checked++
	}
	if checked < 2 {
		t.Errorf("only %d golden updates are from the writer", checked)
	}
}

// setState gives the board the state before the update; its other members are not
// there, but ZCARD is right.
func (h *fixture) setState(t *testing.T, u *wire.Update) {
	t.Helper()
	h.at0(u.At)
	ctx := t.Context()
	old := wire.Hash(u.Member, u.Score-u.Delta)
	must(t, h.client.FlushAll(ctx).Err())
	rows := []redis.Z{{Member: u.Member, Score: u.Score - u.Delta}}
	for i := range u.Members - 1 {
		rows = append(rows, redis.Z{Member: fmt.Sprint("other", i), Score: 1})
	}
	must(t, h.client.ZAdd(ctx, h.opts.Names.BoardKey(u.Board), rows...).Err())
	must(t, h.applier.prepare(ctx, u.Board, rules{}, ""))
	m, err := h.applier.meta(ctx, u.Board)
	must(t, err)
	m.Run, m.Seq, m.Sum = u.Run, u.Seq-1, (u.Sum+old-wire.Hash(u.Member, u.Score))&wire.SumMask
	must(t, h.client.Set(ctx, h.opts.Names.MetaKey(u.Board), wire.AppendMeta(nil, &m), 0).Err())
}

// at0 has the applier live at a time in Unix milliseconds.
func (h *fixture) at0(ms int64) {
	at := time.UnixMilli(ms)
	h.applier.now = func() time.Time { return at }
}
