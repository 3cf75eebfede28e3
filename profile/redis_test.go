package profile

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

func redisClient(t *testing.T, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true,
		ContextTimeoutEnabled: true, MaxRetries: -1})
	t.Cleanup(func() { client.Close() })
	return client
}

func redisSource(t *testing.T, client Pipeliner, opts RedisOptions) *Redis {
	t.Helper()
	r, err := NewRedis(client, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRedisStrings(t *testing.T) {
	client, name := redisClient(t, testkit.Redis(t)), testkit.Name(t)
	for member, value := range map[string]string{
		"ok": `{"nick": "ü"}`, "spaces": "\n {} \n", "empty": "", "list": "[]", "cut": `{"nick":`,
		"long": `{"a":"` + strings.Repeat("x", 100) + `"}`, "huge": strings.Repeat("x", 8<<20), "bytes": "{\"a\":\"\xff\"}",
	} {
		if err := client.Set(t.Context(), name+":"+member, value, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}
	client.LPush(t.Context(), name+":type", "x")
	client.Expire(t.Context(), name+":type", time.Minute)
	r := redisSource(t, client, RedisOptions{Key: name + ":<member>", MaxProfile: 100})
	answers, err := load(t, r, "ok", "absent", "spaces", "empty", "list", "cut", "long", "huge", "bytes", "type")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := show(answers), `{"nick": "ü"}||{}||value|json|size|size|value|value`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRedisHashes(t *testing.T) {
	client, name := redisClient(t, testkit.Redis(t)), testkit.Name(t)
	client.HSet(t.Context(), name+":ok", "nick", `a"b`, "avatar", "x.webp", "level", "7")
	client.HSet(t.Context(), name+":long", "nick", strings.Repeat("x", 100))
	client.Set(t.Context(), name+":type", "{}", time.Minute)
	for _, member := range []string{"ok", "long"} {
		client.Expire(t.Context(), name+":"+member, time.Minute)
	}
	r := redisSource(t, client, RedisOptions{Key: name + ":<member>", Type: RedisHash, MaxProfile: 100})
	answers, err := load(t, r, "ok", "absent", "long", "type")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := show(answers), `{"avatar":"x.webp","level":"7","nick":"a\"b"}||size|value`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRedisOutage(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	client := redisClient(t, server.Addr())
	r := redisSource(t, client, RedisOptions{Key: "p:<member>"})
	c := start(t, Options{CallTimeout: 100 * time.Millisecond, Retry: time.Millisecond}, r)
	client.Set(t.Context(), "p:a", "{}", 0)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := r.Load(ctx, []string{"a"}, make([]Answer, 1)); kindOf(err) != "timeout" {
		t.Errorf("%v, want a timeout", err)
	}
	if _, missing := get(t, c, "a"); missing != 1 {
		t.Errorf("missing %d of a Redis that hangs, want 1", missing)
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if json, missing := get(t, c, "a"); missing != 0 || json != "{}" {
			return fmt.Errorf("%q, missing %d", json, missing)
		}
		return nil
	})
}

func TestRedisThatRefusesSpeaksForAll(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	client := redisClient(t, server.Addr())
	if err := client.ConfigSet(t.Context(), "requirepass", "s3cret").Err(); err != nil {
		t.Fatal(err)
	}
	stranger := redisSource(t, redisClient(t, server.Addr()), RedisOptions{Key: "p:<member>"})
	if answers, err := load(t, stranger, "a"); err == nil {
		t.Errorf("NOAUTH taken for an answer: %s", show(answers))
	}
}

func TestRedisOptions(t *testing.T) {
	for _, opts := range []RedisOptions{{}, {Key: "p"}, {Key: "<member><member>"}, {Key: "p:<member>", Type: "set"}} {
		if _, err := NewRedis(nil, opts); err == nil {
			t.Errorf("%+v accepted", opts)
		}
	}
}
