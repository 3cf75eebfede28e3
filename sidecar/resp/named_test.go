package resp

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
)

// Reads of a member that another connection has written here go to Redis until the copy is known to have the write; those
// of other members, and pages, don't.
func TestWritesOfOtherConnections(t *testing.T) {
	e := newLogged(t, "open")
	e.fill(10, falling)
	e.client.Del(t.Context(), "open") // so that what comes from Redis is told from the copy
	one, other := e.dial(), e.dial()
	one.want(":2\r\n", "ZADD", "open", "7000", fixture.Member(3), "7001", fixture.Member(4))
	other.want("$4\r\n7000\r\n", "ZSCORE", "open", fixture.Member(3))
	other.want(":1\r\n", "ZRANK", "open", fixture.Member(4))
	other.want("$4\r\n1000\r\n", "ZSCORE", "open", fixture.Member(0))
	other.want("*1\r\n$7\r\nm000000\r\n", words("ZREVRANGE open 0 0")...)
	other.want("*2\r\n$4\r\n1000\r\n$3\r\n999\r\n", "ZMSCORE", "open", fixture.Member(0), fixture.Member(1))
	other.want("*2\r\n$-1\r\n$4\r\n7000\r\n", "ZMSCORE", "open", fixture.Member(0), fixture.Member(3))
	e.current()
	other.want("$3\r\n997\r\n", "ZSCORE", "open", fixture.Member(3))

	one.want("+OK\r\n", "MULTI")
	one.want("+QUEUED\r\n", "ZINCRBY", "open", "1", fixture.Member(3))
	other.want("$3\r\n997\r\n", "ZSCORE", "open", fixture.Member(3)) // nothing is written before EXEC
	one.want("*1\r\n$4\r\n7001\r\n", "EXEC")
	other.want("$4\r\n7001\r\n", "ZSCORE", "open", fixture.Member(3))
}

// A user that may not add to the log is told, with what to grant.
func TestLogIsForbidden(t *testing.T) {
	redisAddr := testkit.StartRedis(t, servers.RedisOptions{}).Addr()
	admin := redis.NewClient(&redis.Options{Addr: redisAddr})
	t.Cleanup(func() { _ = admin.Close() })
	for rule, want := range map[string]string{"+@all": "", "-xadd": "may_run_scripts=true may_add=false", "-@scripting": "may_run_scripts=false"} {
		if err := admin.Do(t.Context(), "ACL", "SETUSER", "app", "reset", "on", ">pw", "~*", "+@all", rule).Err(); err != nil {
			t.Fatal(err)
		}
		e := newEnv(t, redisAddr, func(c *Config) {
			c.Logged = func(rankcache.BoardID) bool { return true }
			c.Credentials = func() (string, string) { return "app", "pw" }
		}).learned()
		var out bytes.Buffer
		l := learner{upstreams: e.upstreams, log: slog.New(slog.NewTextHandler(&out, nil)), tried: make(chan struct{})}
		l.learned(e.facts.Load())
		if got := out.String(); want == "" && strings.Contains(got, "WARN") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", rule, got)
		}
	}
	if n, err := admin.Exists(t.Context(), "rankcache:log").Result(); n != 0 || err != nil {
		t.Errorf("asking made a log: %d, %v", n, err)
	}
}
