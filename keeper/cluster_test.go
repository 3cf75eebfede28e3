package keeper

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/origin"
	"rankcache/wire"
)

// TestStatesOfACluster: the value has the boards of all masters, whichever of them has the value itself.
func TestStatesOfACluster(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: testkit.RedisCluster(t), Protocol: 2})
	defer client.Close()
	instance := testkit.Name(t)
	value := &Value{Redis: client, Key: wire.DefaultNames().StatesKey(instance), Written: wire.DefaultNames().WrittenKey(instance), Instance: "it", Timeout: 5 * time.Second}
	master := func(key string) string {
		c, err := client.MasterForKey(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		return c.Options().Addr
	}
	var boards []rankcache.BoardID
	masters := map[string]bool{}
	for i := 0; len(masters) < 3 && i < 1000; i++ {
		b := fmt.Sprintf("%s_%d", testkit.Name(t), i)
		if masters[master(b)] {
			continue
		}
		masters[master(b)], boards = true, append(boards, rankcache.BoardID(b))
		for m := range len(boards) {
			client.ZAdd(ctx, b, redis.Z{Member: fmt.Sprint(m), Score: 1})
		}
	}
	if len(boards) < 3 || !masters[master(value.Key)] {
		t.Fatalf("%d masters have boards, and the value is elsewhere", len(boards))
	}
	p, err := New(value, origin.New(client, wire.DefaultNames()), nil, DefaultEvery, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first value of a key has no boards
		if err := p.publish(ctx, boards, DefaultEvery); err != nil {
			t.Fatal(err)
		}
	}
	states, err := value.States(ctx)
	if err != nil || states.Len() != len(boards) {
		t.Fatalf("%d boards, %v", states.Len(), err)
	}
	for i, b := range boards {
		if s, ok := states.Of(wire.StateKey(string(b))); !ok || s.Members != i+1 {
			t.Errorf("%s: %+v, %v, want %d members", b, s, ok, i+1)
		}
	}
}
