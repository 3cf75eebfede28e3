package writer

import (
	"bytes"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// What the writer publishes is, byte for byte, what readers are tested with.
func TestGoldenUpdates(t *testing.T) {
	golden, err := os.ReadFile("../../wire/testdata/updates.golden")
	must(t, err)
	server := testkit.StartRedis(t, servers.RedisOptions{}) // the boards' names are the file's
	h := quiet(t, func(o *Options) { o.Redis = redisClient(t, server.Addr()) })
	checked := 0
	for line := range bytes.Lines(golden) {
		line = bytes.TrimSpace(line)
		var u wire.Update
		must(t, wire.DecodeUpdate(line, &u))
		if u.Seq == 0 || u.Seq > 1<<53 || u.At < 0 { // from other producers
			continue
		}
		h.before(t, &u)
		got := h.do1(t, string(line)) // an update reads as the command behind it
		equal(t, "update", string(wire.AppendUpdate(nil, &got.Update)), string(line))
		checked++
	}
	if checked < 3 {
		t.Errorf("only %d golden updates are the writer's", checked)
	}
}

// before puts the board into the state that the update starts from.
func (h *house) before(t *testing.T, u *wire.Update) {
	t.Helper()
	must(t, h.client.Set(t.Context(), h.opts.Names.SeqKey(u.Board), u.Seq-1, 0).Err())
	must(t, h.client.ZAdd(t.Context(), h.opts.Names.BoardKey(u.Board), redis.Z{Member: u.Member, Score: u.Score - u.Delta}).Err())
}
