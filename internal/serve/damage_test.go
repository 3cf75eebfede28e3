package serve

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/lab/servers"
	"rankcache/internal/masters"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// What is left is summed up over all masters that are damaged.
func TestDamage(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]redis.UniversalClient{
		"single":  redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2, DisableIdentity: true}),
		"cluster": redis.NewClusterClient(&redis.ClusterOptions{Addrs: testkit.RedisCluster(t), Protocol: 2, DisableIdentity: true}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { client.Close() })
			names := wire.DefaultNames()
			names.Commands = testkit.Name(t)
			look := newDamageLook(client, names)
			want := func(want string) {
				t.Helper()
				got := "none"
				if d := look.look(t.Context()); d != nil {
					left := "?"
					if d.Left != nil {
						left = fmt.Sprint(*d.Left)
					}
					got = fmt.Sprintf("%d masters since %d, %d wanted, %s left", d.Masters, d.Since.UnixMilli(), d.Wanted, left)
				}
				if got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			want("none")
			tags := tagsOf(t, client)
			n := len(tags)
			for i, tag := range tags {
				must(t, client.HSet(t.Context(), names.AppliedKey(tag), wire.PositionsLife, "x", "0", "topic 5 -", wire.PositionsDamaged, fmt.Sprint(7000-i, " 1")).Err())
			}
			want(fmt.Sprintf("%d masters since %d, 0 wanted, ? left", n, 7001-n))
			for _, tag := range tags {
				must(t, client.SAdd(t.Context(), names.WantedKey(tag), "a", "b").Err())
				must(t, client.HSet(t.Context(), names.AnswersKey(tag), "c", "go 00ff", wire.AnswersLeft, "40 00ff").Err())
			}
			want(fmt.Sprintf("%d masters since %d, %d wanted, %d left", n, 7001-n, 2*n, 40*n))
			for _, tag := range tags {
				must(t, client.Del(t.Context(), names.AppliedKey(tag), names.WantedKey(tag), names.AnswersKey(tag)).Err())
			}
			want("none")
		})
	}
}

// A user that may not read the marks: it is not known, and why.
func TestDamageIsNotKnown(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	must(t, server.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">secret", "allkeys", "+@all", "-hget"))
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2, DisableIdentity: true, Username: "app", Password: "secret"})
	t.Cleanup(func() { client.Close() })
	look := newDamageLook(client, wire.DefaultNames())
	d := look.look(t.Context())
	if d == nil || d.Masters != 0 || !strings.Contains(d.Unknown, "NOPERM") {
		t.Errorf("got %+v, want what Redis refused", d)
	}
	must(t, server.Do(t.Context(), "ACL", "SETUSER", "app", "+hget"))
	if d := look.look(t.Context()); d != nil {
		t.Errorf("got %+v, want none", d)
	}
	must(t, server.Kill())
	if d := look.look(t.Context()); d != nil {
		t.Errorf("got %+v of a server that is away, which its own lamp shows", d)
	}
}

func tagsOf(t *testing.T, client redis.UniversalClient) (tags []string) {
	var mu sync.Mutex
	must(t, masters.Each(t.Context(), client, func(_ context.Context, tag string, _ redis.Cmdable) error {
		mu.Lock()
		defer mu.Unlock()
		tags = append(tags, tag)
		return nil
	}))
	return tags
}
