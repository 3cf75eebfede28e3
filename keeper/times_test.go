package keeper

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/masters"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// TestTimes: each master has a time, from which its replica tells its age.
func TestTimes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: testkit.RedisCluster(t), Protocol: 2})
	defer client.Close()
	times, before := NewTimes(client, 5*time.Second, slog.New(slog.DiscardHandler)), time.Now()
	if err := times.write(ctx); err != nil {
		t.Fatal(err)
	}
	parts, err := masters.Parts(ctx, client)
	if err != nil || len(parts) != 3 {
		t.Fatalf("%+v, %v", parts, err)
	}
	var mu sync.Mutex
	found := 0
	err = masters.Each(ctx, client, func(_ context.Context, tag string, node redis.Cmdable) error {
		written, err := wire.ParseWritten(node.Get(ctx, wire.MasterWrittenKey(tag)).Val())
		if err == nil && (written.Before(before.Truncate(time.Microsecond)) || written.After(time.Now())) {
			err = fmt.Errorf("%v, written after %v", written, before)
		}
		mu.Lock()
		defer mu.Unlock()
		found++
		return err
	})
	if err != nil || found != 3 {
		t.Fatalf("%d masters: %v", found, err)
	}
	for slot, tag := range map[int]string{parts[0].Ranges[0].Start: parts[0].Tag, masters.Slot("{" + parts[1].Tag + "}x{y}"): parts[1].Tag, masters.Slot(wire.MasterWrittenKey(parts[2].Tag)): parts[2].Tag} {
		if masters.Slot(tag) != slot {
			t.Errorf("slot %d of %s", slot, tag)
		}
	}
	if masters.Slot("{}a") != int(client.ClusterKeySlot(ctx, "{}a").Val()) || masters.Slot("a{b") != int(client.ClusterKeySlot(ctx, "a{b").Val()) {
		t.Error("slots of keys with braces are other than the cluster's")
	}
}
