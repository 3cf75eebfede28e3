package resp

import (
	"context"
	"errors"
	"net"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
)

// TestGoRedis uses the client as an app does, in both versions of the protocol.
func TestGoRedis(t *testing.T) {
	r := testkit.StartRedis(t, servers.RedisOptions{})
	e := newEnv(t, r.Addr()).learned()
	e.fill(10, falling)
	for _, proto := range []int{2, 3} {
		client := redis.NewClient(&redis.Options{Addr: e.addr, Protocol: proto, ClientName: "shop"})
		t.Cleanup(func() { _ = client.Close() })
		ctx := t.Context()
		if z, err := client.ZRevRangeWithScores(ctx, "open", 0, 0).Result(); err != nil || len(z) != 1 || z[0] != (redis.Z{Score: 1000, Member: fixture.Member(0)}) {
			t.Errorf("RESP%d: %v, %v", proto, z, err)
		}
		if n := e.Status().Upstreams; n != 0 {
			t.Errorf("RESP%d: connecting and reading a board took %d connections to Redis", proto, n)
		}
		var n *redis.IntCmd
		if _, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, "k", 1, 0)
			n = p.Incr(ctx, "k")
			return nil
		}); err != nil || n.Val() != 2 {
			t.Errorf("RESP%d: a transaction: %v, %v", proto, n, err)
		}
		script := redis.NewScript("return redis.call('ZCARD', KEYS[1]) .. ARGV[1]")
		if got, err := script.RunRO(ctx, client, []string{"open"}, "x").Text(); err != nil || got != "10x" {
			t.Errorf("RESP%d: a script: %q, %v", proto, got, err)
		}
		sub := client.Subscribe(ctx, "news")
		if _, err := sub.Receive(ctx); err != nil {
			t.Error(err)
		}
		client.Publish(ctx, "news", "hello")
		if m, err := sub.ReceiveMessage(ctx); err != nil || m.Payload != "hello" {
			t.Errorf("RESP%d: a message: %v, %v", proto, m, err)
		}
		_ = sub.Close()
		go client.LPush(ctx, "list", "a")
		if got, err := client.BLPop(ctx, 5*time.Second, "list").Result(); err != nil || strings.Join(got, " ") != "list a" {
			t.Errorf("RESP%d: a blocking pop: %v, %v", proto, got, err)
		}
		if err := client.Watch(ctx, func(tx *redis.Tx) error {
			client.Set(ctx, "k", "other", 0)
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, "k", 9, 0).Err() })
			return err
		}, "k"); !errors.Is(err, redis.TxFailedErr) {
			t.Errorf("RESP%d: WATCH: %v", proto, err)
		}
		e.closeAll()
		if n, err := client.ZCard(ctx, "open").Result(); err != nil || n != 10 {
			t.Errorf("RESP%d: after its connections were closed: %d, %v", proto, n, err)
		}
	}
}

// TestRedisTools runs redis-cli and redis-benchmark.
func TestRedisTools(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	e.fill(10, falling)
	_, port, _ := net.SplitHostPort(e.addr)
	for _, c := range []struct{ tool, args, in, want string }{
		{"redis-cli", "ZREVRANGE open 0 0 WITHSCORES", "", "m000000\n1000\n"},
		{"redis-cli", "-3 ZSCORE open m000001", "", "999\n"},
		{"redis-cli", "", "MULTI\nZCARD open\nEXEC\nZCARD open\n", "OK\nQUEUED\n10\n10\n"},
		{"redis-cli", "--pipe", strings.Repeat("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n", 5000), "errors: 0, replies: 5000"},
		{"redis-cli", "--scan --pattern hot", "", "hot\n"},
		{"redis-benchmark", "-q -n 2000 -P 16 -t set,get,incr,lpush,zadd,mset", "", "SET: "},
		{"redis-benchmark", "-q -n 2000 -P 16 ZREVRANGE open 0 9", "", "ZREVRANGE open 0 9: "},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := osexec.CommandContext(ctx, c.tool, append([]string{"-p", port}, strings.Fields(c.args)...)...)
		cmd.Stdin = strings.NewReader(c.in)
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil || !strings.Contains(string(out), c.want) || strings.Contains(string(out), "rror:") {
			t.Errorf("%s %s: %v\n%s", c.tool, c.args, err, out)
		}
	}
	if e.counted(zRevRange, sourceLocal) < 2000 {
		t.Error("redis-benchmark's reads were not answered here")
	}
}
