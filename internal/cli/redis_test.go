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
