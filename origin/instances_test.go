package origin

import (
	"context"
	"errors"
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

// instancesOf returns the options of servers that know nothing of each other.
func instancesOf(addrs ...string) Options {
	return Options{Mode: ModeInstances, URL: "redis://" + addrs[0] + "?addr=" + strings.Join(addrs[1:], "&addr="), Timeout: testTimeout}
}

func newInstances(t *testing.T) (all []*servers.Redis, addrs []string) {
	for range 3 {
		all = append(all, testkit.StartRedis(t, servers.RedisOptions{}))
		addrs = append(addrs, all[len(all)-1].Addr())
	}
	return all, addrs
}

// Boards are spread over servers that know nothing of each other as over a cluster.
func TestInstances(t *testing.T) {
	t.Parallel()
	all, addrs := newInstances(t)
	client := dialed(t, instancesOf(addrs...))
	readsFromAll(t, client)
	for _, addr := range addrs {
		n, err := dialed(t, Options{URL: "redis://" + addr}).DBSize(t.Context()).Result()
		if must(t, err); n < 10 {
			t.Errorf("%s has %d keys", addr, n)
		}
	}
	names := make(map[string]bool)
	for i := range 3 {
		name, err := masters.Of(t.Context(), client, masters.Tag(i*slots/3))
		must(t, err)
		equal(t, "name", name, masters.Tag(i*slots/3))
		names[name] = true
	}
	must(t, masters.Each(t.Context(), client, func(_ context.Context, tag string, _ redis.Cmdable) error {
		if !names[tag] {
			return fmt.Errorf("another name: %s", tag)
		}
		return nil
	}))

	must(t, all[1].Kill())
	tag := masters.Tag(slots / 3)
	for _, id := range []string{masters.Tag(0), tag, masters.Tag(2 * slots / 3)} {
		if err := client.ZCard(t.Context(), id).Err(); (err != nil) != (id == tag) {
			t.Errorf("while the second of three is away, %s: %v", id, err)
		}
	}
}

// An instance that was given another place is refused, also where its addresses are as many.
func TestPlacesOfInstances(t *testing.T) {
	t.Parallel()
	_, addrs := newInstances(t)
	ask := func(note bool, addrs ...string) error {
		o := instancesOf(addrs...)
		o.NotePlace = note
		client := dialed(t, o)
		return client.(*redis.ClusterClient).ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
			return node.Ping(ctx).Err()
		})
	}
	must(t, ask(false, addrs[1], addrs[0], addrs[2])) // no writer has noted anything
	must(t, ask(true, addrs...))
	must(t, ask(false, addrs...))
	for _, other := range [][]string{{addrs[1], addrs[0], addrs[2]}, addrs[:2]} {
		if err := ask(true, other...); !errors.Is(err, ErrOtherPlace) || !strings.Contains(err.Error(), wire.PlaceKey) {
			t.Errorf("%v: %v", other, err)
		}
		client := dialed(t, instancesOf(other...))
		var all sync.WaitGroup
		for i := range 64 { // connections that are opened while the first is asked
			all.Go(func() { client.Set(t.Context(), fmt.Sprint("k", i), 1, 0) })
		}
		all.Wait()
		for _, addr := range addrs[:2] { // the third has its place
			n, err := dialed(t, Options{URL: "redis://" + addr}).DBSize(t.Context()).Result()
			must(t, err)
			equal(t, "keys", n, int64(1))
		}
	}
}

func TestInstancesNeedAddresses(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"redis://a:1", "redis://a:1?addr=a:1", "redis://a:1?addr=b:1&addr=b:1"} {
		if _, err := Dial(Options{Mode: ModeInstances, URL: url}); err == nil || !strings.Contains(err.Error(), "?addr=host2:6379") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
