package servers_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// client answers quickly when the server does not: no retries, half a second.
func client(t *testing.T, addr string) *redis.Client {
	const timeout = 500 * time.Millisecond
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1, ReadTimeout: timeout, DialTimeout: timeout})
	t.Cleanup(func() { c.Close() })
	return c
}

func TestRedisKeepsNothingOverARestart(t *testing.T) {
	testkit.NoLeaks(t)
	r := testkit.StartRedis(t, servers.RedisOptions{})
	c, addr, pid := client(t, r.Addr()), r.Addr(), r.Pid()
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.Addr() != addr || r.Pid() == pid {
		t.Errorf("restarted on %s as %d, was on %s as %d", r.Addr(), r.Pid(), addr, pid)
	}
	if err := c.Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("the key is still there (%v) although nothing is written to disk", err)
	}
}

func TestRedisWithAppendOnlyFileSurvivesACrash(t *testing.T) {
	r := testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	c := client(t, r.Addr())
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Kill(), r.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := c.Get(t.Context(), "k").Val(); got != "v" {
		t.Errorf("got %q after the crash, want v", got)
	}
}

func TestRedisPauseAnswersNoClientUntilResume(t *testing.T) {
	r := testkit.StartRedis(t, servers.RedisOptions{})
	c := client(t, r.Addr())
	if err := r.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Error("a paused server answered")
	}
	if err := r.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Error("after Resume:", err)
	}
}

func TestRedisStopEndsAPausedServerToo(t *testing.T) {
	r := testkit.StartRedis(t, servers.RedisOptions{})
	if err := errors.Join(r.Pause(), r.Stop()); err != nil {
		t.Fatal(err)
	}
	if r.Running() {
		t.Error("running after Stop")
	}
	if err := r.Stop(); err != nil {
		t.Error("second Stop:", err)
	}
	if err := r.Pause(); err == nil {
		t.Error("a stopped server was paused")
	}
	if !strings.Contains(r.Output(), "ready to exit") {
		t.Errorf("no farewell in the output:\n%s", r.Output())
	}
}

func TestRedisOnASocket(t *testing.T) {
	r := testkit.StartRedis(t, servers.RedisOptions{Unix: true})
	if err := client(t, r.Addr()).Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

func TestRedisWithAPassword(t *testing.T) {
	testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--requirepass", "secret"}})
}

func TestRedisThatCannotStartShowsWhy(t *testing.T) {
	testkit.Redis(t) // skips where there is none
	_, err := servers.StartRedis(t.Context(), servers.RedisOptions{Args: []string{"--no-such-setting", "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("got %v, want the server's own words", err)
	}
}

// A stranger on the port must not pass for the server that was started.
func TestRedisTellsAStranger(t *testing.T) {
	first := testkit.StartRedis(t, servers.RedisOptions{})
	var port int
	if _, err := sscanPort(first.Addr(), &port); err != nil {
		t.Fatal(err)
	}
	if second, err := servers.StartRedis(t.Context(), servers.RedisOptions{Port: port}); err == nil {
		second.Close()
		t.Error("two servers on one port")
	}
}

func TestRedisCloseRemovesItsFolder(t *testing.T) {
	r := testkit.StartRedis(t, servers.RedisOptions{})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(r.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there (%v)", r.Dir(), err)
	}
}

func TestRedisMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := servers.StartRedis(t.Context(), servers.RedisOptions{}); !errors.Is(err, servers.ErrNotInstalled) {
		t.Errorf("got %v, want ErrNotInstalled", err)
	}
}
