package cli

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// TestTLSToAPlainRedis: the library only reports that a first record is none.
func TestTLSToAPlainRedis(t *testing.T) {
	t.Parallel()
	addr := testkit.StartRedis(t, servers.RedisOptions{}).Addr()
	for _, mode := range []string{"single", "cluster"} {
		o, flags := &RedisOptions{}, pflag.NewFlagSet("any", pflag.ContinueOnError)
		o.RegisterRedis(flags)
		must(t, flags.Parse([]string{"--redis", "rediss://" + addr, "--redis-mode", mode, "--redis-timeout", "1s"}))
		client, err := o.DialRedis()
		must(t, err)
		if err := client.Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "use redis:// instead of rediss://") {
			t.Errorf("%s: got %v", mode, err)
		}
		client.Close()
	}
}

// TestReplicasThatAreRead: each mode has its way to name them.
func TestReplicasThatAreRead(t *testing.T) {
	t.Parallel()
	const three = "redis://a:1?addr=b:1&addr=c:1"
	for _, c := range []struct{ mode, redis, read, want string }{
		{"single", "redis://a:1", "redis://b:1", ""},
		{"sentinel", "redis://a:1?master_name=m", "redis://b:1?master_name=m", ""},
		{"single", "redis://a:1", "replicas", "want the word replicas with --redis-mode cluster"},
		{"single", "redis://a:1", "http://b:1", "--redis-read is not a URL of Redis"},
		{"cluster", "redis://a:1", "replicas", ""},
		{"cluster", "redis://a:1", "redis://b:1", "want the word replicas"},
		{"instances", three, "redis://d:1?addr=e:1&addr=f:1", ""},
		{"instances", three, "redis://d:1?addr=e:1", "names 2 replicas, and --redis 3 instances"},
	} {
		o, flags := &RedisOptions{}, pflag.NewFlagSet("any", pflag.ContinueOnError)
		o.RegisterRedis(flags)
		read := SecretVar(flags, "redis-read", "", "")
		must(t, flags.Parse([]string{"--redis", c.redis, "--redis-mode", c.mode, "--redis-read", c.read}))
		client, err := o.DialRead("redis-read", read)
		if err == nil {
			client.Close()
		}
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
