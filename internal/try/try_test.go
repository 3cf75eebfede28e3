package try

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var answered = []string{"ZREVRANGE", "ZREVRANK", "ZSCORE"}

// load reads and changes boards of a Redis until the end of the test.
func load(t *testing.T, addr string) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		defer client.Close()
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = client.Pipelined(ctx, func(p redis.Pipeliner) error {
				for range 6 {
					p.ZRevRange(ctx, "a board\n1", 0, 49)
				}
				p.ZRevRank(ctx, "a board\n1", "m1")
				p.ZScore(ctx, "2", "m1")
				p.ZIncrBy(ctx, "2", 1, "m1")
				p.Get(ctx, "no board")
				p.Eval(ctx, "return redis.call('ZREVRANGE', KEYS[1], 0, 9)", []string{"read by a script"})
				return nil
			})
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	testkit.Eventually(t, time.Minute, func() error { return client.Get(ctx, "begun").Err() })
}

func TestWatch(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	for _, args := range [][]any{{"ACL", "SETUSER", "looker", "on", ">hush", "~*", "+@all"}, {"ACL", "SETUSER", "blind", "on", ">hush", "~*", "+@all", "-monitor"},
		{"ZADD", "a board\n1", "1", "m1", "2", "m2"}, {"ZADD", "2", "1", "m1"}, {"SET", "begun", "1"}} {
		if err := server.Do(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	load(t, server.Addr())
	as := func(user string) *redis.Client {
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: user, Password: "hush", Protocol: 2})
		t.Cleanup(func() { client.Close() })
		return client
	}
	r, err := Watch(t.Context(), as("looker"), 2*time.Second, answered, true)
	if err != nil {
		t.Fatal(err)
	}
	var screen bytes.Buffer
	if err := r.Print(&screen); err != nil || strings.Count(screen.String(), "\n") > 24 || !strings.Contains(screen.String(), `"a board\n1"`) {
		t.Errorf("%v, printed %s", err, &screen)
	}
	t.Log(&screen)
	first := r.Keys[0]
	if len(r.Keys) != 2 || first.Key != "a board\n1" || first.Members != 2 || first.Of["ZREVRANGE"] < 3*first.Of["ZREVRANK"] || first.Reads < 4*r.Keys[1].Reads {
		t.Errorf("keys %+v", r.Keys)
	}
	// 8 of 12 commands, of which one is the script's; its own read is not spared.
	if r.Spared < 0.5 || r.Spared > 0.75 || r.SparedTime <= 0 || r.SparedTime > 1 {
		t.Errorf("spared %+v", r)
	}
	for _, c := range r.Commands {
		if c.Name == "ZINCRBY" && c.Local != 0 || c.Name == "ZREVRANGE" && (c.Local < c.Calls/2 || c.Local > 0.95*c.Calls) {
			t.Errorf("%+v", c)
		}
	}
	if r, err := Watch(t.Context(), as("looker"), 300*time.Millisecond, answered, false); err != nil || len(r.Keys) != 0 || r.Spared < 0.5 {
		t.Errorf("without consent: %+v, %v", r, err)
	}
	if _, err := Watch(t.Context(), as("blind"), time.Second, answered, true); err == nil || !strings.Contains(err.Error(), "MONITOR: NOPERM") {
		t.Errorf("a user without MONITOR: %v", err)
	}
	if info, err := as("looker").ClientList(t.Context()).Result(); err != nil || strings.Contains(info, "cmd=monitor") {
		t.Errorf("MONITOR is left behind: %s, %v", info, err)
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	for _, consent := range []bool{true, false} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		if _, err := Watch(ctx, client, time.Hour, answered, consent); err == nil {
			t.Errorf("consent %t: no error", consent)
		}
		cancel()
		client.Close()
	}
}
